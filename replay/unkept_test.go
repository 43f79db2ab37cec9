// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// What the recording did not keep is made up; what depends on it is not compared,
// and all else is.
func TestContentThatWasNotKept(t *testing.T) {
	type step struct {
		op   event.Op
		off  int64
		text string
		head int // bytes kept
		hash bool
	}
	const w, r = event.OpPwrite64, event.OpPread64
	for _, tt := range []struct {
		name       string
		steps      []step
		uncompared uint64
		different  uint64
	}{
		{"what was written is read", []step{{w, 0, "hello", 5, false}, {r, 0, "hello", 5, false}}, 0, 0},
		{"by its hash", []step{{w, 0, "hello", 5, false}, {r, 0, "hello", 0, true}}, 0, 0},
		{"another hash", []step{{w, 0, "hello", 5, false}, {r, 0, "hullo", 0, true}}, 0, 1},
		{"writes without content", []step{{w, 0, "hello", 0, false}, {r, 0, "hello", 5, false}, {r, 4, "o", 0, true}},
			2, 0},
		{"hashed writes", []step{{w, 0, "hello", 0, true}, {r, 0, "hello", 0, true}}, 1, 0},
		{"overwritten with content", []step{{w, 0, "hello", 0, false}, {w, 0, "HELLO", 5, false},
			{r, 0, "HELLO", 0, true}}, 0, 0},
		{"beside it", []step{{w, 0, "hello", 0, false}, {w, 5, "world", 5, false}, {r, 5, "world", 5, false},
			{r, 4, "ow", 2, false}}, 1, 0},
		{"beside it, different", []step{{w, 0, "hello", 0, false}, {w, 5, "world", 5, false},
			{r, 5, "World", 5, false}}, 0, 1},
		{"the head is known", []step{{w, 0, "hello", 2, false}, {r, 0, "he", 2, false}, {r, 0, "hel", 3, false}}, 1, 0},
		{"the head is compared", []step{{w, 0, "hello", 5, false}, {r, 0, "hexlo", 2, false},
			{r, 0, "hxllo", 2, false}}, 2, 1},
		{"reads without content", []step{{w, 0, "hello", 5, false}, {r, 0, "hello", 0, false}}, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tapescript.New(t)
			s.Open(3, "f", event.OpenCreat|2)
			for _, c := range tt.steps {
				s.Kept(c.op, c.off, c.text, c.head, c.hash)
			}
			rep, err := Run(context.Background(), s.Close(), &Options{
				Into: filepath.Join(t.TempDir(), "out"), Checks: CheckAll,
			})
			if err != nil {
				t.Fatal(err)
			}
			if rep.Uncompared != tt.uncompared || rep.Different != tt.different {
				t.Errorf("%d not compared, %d different, want %d and %d: %+v", rep.Uncompared, rep.Different,
					tt.uncompared, tt.different, rep.Mismatches)
			}
		})
	}
}

// Content that was there before is known if some read kept it.
func TestInitialContentThatWasNotKept(t *testing.T) {
	s := tapescript.New(t)
	s.Open(3, "f", 0) // it exists
	s.Kept(event.OpPread64, 0, "hello world", 0, true)
	s.Kept(event.OpPread64, 6, "world", 5, false)
	s.Kept(event.OpPread64, 6, "world", 0, true)
	s.Kept(event.OpPread64, 4, "o w", 0, true)
	rep, err := Run(context.Background(), s.Close(), &Options{
		Into: filepath.Join(t.TempDir(), "out"), Checks: CheckAll,
	})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Uncompared != 2 || rep.Different != 0 {
		t.Errorf("%d not compared, %d different: %+v", rep.Uncompared, rep.Different, rep.Mismatches)
	}
}

// What was made up is so in files that took it over, too, and a duplicate of the descriptor
// that once made a file does not make it again.
func TestMadeUpContentMoves(t *testing.T) {
	s := tapescript.New(t)
	s.Opened(3, "f", tapescript.IsFile, event.OpenCreat|2)
	f := s.Handle(3)
	f.Flags, f.Size = event.OpenCreat|2, 5
	s.Kept(event.OpPwrite64, 0, "hello", 0, false)
	dup := f
	dup.Arg, dup.FD = event.ResultArg, 5
	s.Add(event.Event{Op: event.OpDup, Ret: 5, Args: [6]uint64{3}, Files: []event.File{f, dup}})
	s.Kept(event.OpPread64, 0, "hello", 5, false)
	s.Opened(4, "g", tapescript.IsFile, event.OpenCreat|2)
	g := s.Handle(4)
	s.Shares(4, event.FiClone, &g, f)
	s.Add(event.Event{Op: event.OpPread64, Ret: 5, Count: 5, Args: [6]uint64{4, 0x1000, 5}, Files: []event.File{g},
		Bufs: []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindBuf, Len: 5, Inline: []byte("hello")}}})
	rep, err := Run(context.Background(), s.Close(), &Options{
		Into: filepath.Join(t.TempDir(), "out"), Checks: CheckAll,
	})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Uncompared != 2 || rep.Different != 0 {
		t.Errorf("%d not compared, %d different, want 2 and none: %+v", rep.Uncompared, rep.Different, rep.Mismatches)
	}
}
