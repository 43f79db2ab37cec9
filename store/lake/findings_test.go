// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"path/filepath"
	"testing"
)

// Of a tape that is too large for its flow, the number of findings is unknown, not 0.
func TestFindingsAreBounded(t *testing.T) {
	for _, c := range []struct {
		limit int64
		want  string
	}{{0, "0\n"}, {6, "0\n"}, {5, "<nil>\n"}, {-1, "<nil>\n"}} {
		l := lakeAt(t, filepath.Join(t.TempDir(), "lake"), func(o *Options) { o.Findings = c.limit })
		if _, err := l.Add(t.Context(), made(t, "db1", noon, 3), ""); err != nil { // of 6 events
			t.Fatal(err)
		}
		if got := answer(t, l, "SELECT findings FROM summaries", &Range{}); got != c.want {
			t.Errorf("limit %d: %s findings, want %s", c.limit, got, c.want)
		}
	}
}
