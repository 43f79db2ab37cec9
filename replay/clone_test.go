// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// Files that took over content of another have it, also where the file system cannot have
// them share it, and keep what is beside it.
func TestClones(t *testing.T) {
	for _, c := range []struct {
		name    string
		cmd     uint64
		numbers []int64 // behind the source's descriptor
		want    string
	}{
		{"all", event.FiClone, nil, "0123456789fghijk"},
		{"a range", event.FiCloneRange, []int64{2, 3, 5}, "ABCDE234IJKLMNOP"},
		{"up to the end", event.FiCloneRange, []int64{6, 0, 2}, "AB6789GHIJKLMNOP"},
		{"behind the end", event.FiCloneRange, []int64{0, 4, 18}, "ABCDEFGHIJKLMNOP\x00\x000123"},
		{"over the end", event.FiCloneRange, []int64{0, 10, 12}, "ABCDEFGHIJKL0123456789"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tapescript.New(t)
			s.Open(3, "from", event.OpenCreat|2)
			s.Kept(event.OpPwrite64, 0, "0123456789", 10, false)
			from := s.Handle(3)
			from.Size = 10
			s.Opened(4, "to", tapescript.IsFile, event.OpenCreat|2)
			text := "ABCDEFGHIJKLMNOP"
			if c.cmd == event.FiClone {
				text = "abcdefghijklmnop"[:10] + "fghijk"
			}
			w := s.Handle(4)
			s.Add(event.Event{Op: event.OpPwrite64, Ret: int64(len(text)), Count: int64(len(text)),
				Args: [6]uint64{4, 0x1000, uint64(len(text))}, Files: []event.File{w},
				Bufs: []event.Buf{{Arg: 1, Kind: event.KindBuf, Len: int64(len(text)), Inline: []byte(text)}}})
			numbers := append([]int64{3}, c.numbers...)
			s.Shares(4, c.cmd, &w, from, numbers...)
			// Where the source is read from next has not changed.
			s.Add(event.Event{
				Op: event.OpLseek, Args: [6]uint64{3, 0, 1}, Files: []event.File{from}, Offset: -1, Count: -1,
			})
			n := int64(len(c.want))
			s.Add(event.Event{Op: event.OpPread64, Ret: n, Count: n, Args: [6]uint64{4, 0x1000, uint64(n)},
				Files: []event.File{w},
				Bufs:  []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindBuf, Len: n, Inline: []byte(c.want)}}})
			into := filepath.Join(t.TempDir(), "out")
			rep, err := Run(context.Background(), s.Close(), &Options{Into: into, Checks: CheckAll})
			if err != nil {
				t.Fatal(err)
			}
			if !rep.OK() {
				t.Errorf("%+v", rep.Mismatches)
			}
			got, err := os.ReadFile(filepath.Join(into, "work/to"))
			if err != nil || string(got) != c.want {
				t.Errorf("%q (%v), want %q", got, err, c.want)
			}
		})
	}
}
