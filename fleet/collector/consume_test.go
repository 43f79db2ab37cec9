// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestConsumerTaken takes the collector's consumers away at the broker, as the loss of a broker of three does, while
// batches come: it makes others, by other names, and each batch is stored once.
func TestConsumerTaken(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it waits until consumers are asked for again")
	s := newBench(t)
	s.run(nil)
	name, all, want := sequence(1, 30)
	used := map[string]int{}
	for i, p := range all {
		s.publish("db7", p.Append(nil), 0)
		if i != 5 && i != 20 {
			continue
		}
		var now []string
		s.wait("another consumer", func() bool {
			names := s.c.bucket.ConsumerNames(t.Context())
			now = nil
			for n := range names.Name() {
				if used[n] == 0 {
					now = append(now, n)
				}
			}
			return len(now) > 0
		})
		for _, n := range now {
			if used[n]++; s.c.bucket.DeleteConsumer(t.Context(), n) != nil {
				t.Errorf("consumer %s was gone", n)
			}
		}
	}
	s.waitDurable()
	if got := s.stored("db7", name); string(got) != string(want) {
		t.Errorf("%d bytes are stored, want the %d that were sent", len(got), len(want))
	}
	if len(used) != 2 {
		t.Errorf("the collector made consumers %v, want 2", used)
	}
	if h := s.host("db7"); h.Duplicates != 0 || h.Reordered != 0 || h.Stored != 300 {
		t.Errorf("the host is shown as %+v, want 300 events, none twice or in another order", h)
	}
}
