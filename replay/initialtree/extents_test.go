// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
)

// What is settled by reads and writes of a file, against a map of its bytes.
func TestExtentsAgainstBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 200
		initial := make([]byte, size)
		for i := range initial {
			initial[i] = byte(i) | 1
		}
		now := append([]byte(nil), initial...)
		known := make([]bool, size)
		touched := make([]bool, size)
		var x extents
		var inline [][]byte
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			from := rapid.IntRange(0, size-1).Draw(t, "from")
			to := rapid.IntRange(from+1, size).Draw(t, "to")
			write := rapid.Bool().Draw(t, "write")
			for i := from; i < to; i++ {
				known[i] = known[i] || !write && !touched[i]
				touched[i] = true
			}
			if write {
				clear(now[from:to])
				x.wrote(int64(from), int64(to))
				continue
			}
			x.read(int64(from), &event.Buf{Len: int64(to - from), Inline: append([]byte(nil), now[from:to]...)},
				func(b []byte) uint64 {
					inline = append(inline, append([]byte(nil), b...))
					return uint64(len(inline) - 1)
				})
		}
		got := make([]byte, size)
		have := make([]bool, size)
		for _, p := range x.pieces {
			for i := range int(p.len) {
				if have[int(p.off)+i] {
					t.Fatalf("byte %d is stored twice", int(p.off)+i)
				}
				have[int(p.off)+i], got[int(p.off)+i] = true, inline[p.chunk][i]
			}
		}
		for i := range size {
			if have[i] != known[i] || have[i] && got[i] != initial[i] {
				t.Fatalf("byte %d: stored %v %d, initial %d was seen: %v", i, have[i], got[i], initial[i], known[i])
			}
		}
		for i := 1; i < len(x.settled); i++ {
			if x.settled[i-1].To >= x.settled[i].From {
				t.Fatalf("ranges touch: %v", x.settled)
			}
		}
	})
}
