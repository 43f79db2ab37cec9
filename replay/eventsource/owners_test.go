// SPDX-License-Identifier: Apache-2.0

package eventsource

import "testing"

func TestParseIDs(t *testing.T) {
	for text, want := range map[string]map[uint32]uint32{
		"1000:2000":      {0: 0, 999: 999, 1000: 2000, 1001: 1001},
		"0:100000:65536": {0: 100000, 65535: 165535, 65536: 65536},
		"0:1000,1000:0":  {0: 1000, 1000: 0, 1: 1},
		"5:7:2,7:5:2":    {5: 7, 6: 8, 7: 5, 8: 6},
		"":               {0: 0},
		"4294967294:1":   {4294967294: 1},
	} {
		ids, err := ParseIDs(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		for id, becomes := range want {
			if got := ids.Map(id); got != becomes {
				t.Errorf("%q: %d becomes %d, want %d", text, id, got, becomes)
			}
		}
	}
	for _, text := range []string{"1", "1:2:3:4", "a:1", "1:-1", "4294967295:1", "1:2:0", "1:4294967290:100",
		"4294967290:1:100", "1:2,1:3", "1:5:10,10:50", ":", "1:"} {
		if ids, err := ParseIDs(text); err == nil {
			t.Errorf("%q: %v, want an error", text, ids)
		}
	}
}
