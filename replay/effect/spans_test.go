// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Ranges behave like sets of bytes.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 40
		var s Spans
		var want [size]bool
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			from, to := rapid.Int64Range(0, size).Draw(t, "from"), rapid.Int64Range(0, size).Draw(t, "to")
			add := rapid.Bool().Draw(t, "add")
			if add {
				s.Add(from, to)
			} else {
				s.Remove(from, to)
			}
			for i := from; i < to; i++ {
				want[i] = add
			}
		}
		from, to := rapid.Int64Range(0, size).Draw(t, "from"), rapid.Int64Range(0, size).Draw(t, "to")
		if got, wants := s.Overlaps(from, to), from < to && slices.Contains(want[from:to], true); got != wants {
			t.Fatalf("%v overlaps [%d, %d): %v", s, from, to, got)
		}
		var got [size]bool
		last := int64(-1)
		for _, e := range s {
			if e.From <= last || e.To <= e.From {
				t.Fatalf("Spans %v", s)
			}
			last = e.To
			for i := e.From; i < e.To; i++ {
				got[i] = true
			}
		}
		if got != want {
			t.Fatalf("Spans %v", s)
		}
	})
}

// An empty range is no entry: that one is there says that something is made up in a file.
func TestRangesEmpty(t *testing.T) {
	t.Parallel()
	m := Ranges{}
	m.Add(Inode{1, 2}, 4096, 4096)
	if len(m) != 0 {
		t.Errorf("after an empty range was added: %d files, want none", len(m))
	}
}
