// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// A replay takes no more of a disk than it is allowed to, whatever a call asks for.
func TestMaxBytes(t *testing.T) {
	for _, c := range []struct {
		name  string
		op    event.Op
		args  [6]uint64
		ret   int64
		bytes int64 // of a buffer that the tape does not have
	}{
		{"fallocate", event.OpFallocate, [6]uint64{3, 0, 0, 1 << 40}, 0, 0},
		{"write", event.OpWrite, [6]uint64{3, 1, 1 << 30}, 1 << 30, 1 << 30},
		{"short write", event.OpWrite, [6]uint64{3, 1, 1 << 40}, 1 << 30, 1 << 40},
		{"write of more than a kernel writes", event.OpWrite, [6]uint64{3, 1, 1 << 60}, 1 << 60, 1 << 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tapescript.New(t)
			s.Open(3, "f", event.OpenCreat|2)
			var bufs []event.Buf
			if c.bytes > 0 {
				bufs = append(bufs, event.Buf{Arg: 1, Kind: event.KindBuf, Len: c.bytes, Omitted: true})
			}
			s.On(c.op, 3, c.ret, 0, c.args, bufs...)
			into := filepath.Join(t.TempDir(), "out")
			_, err := Run(context.Background(), s.Close(), &Options{Into: into, MaxBytes: 1 << 20})
			if err == nil || !strings.Contains(err.Error(), "--max-bytes") {
				t.Errorf("error is %v, want one that names --max-bytes", err)
			}
		})
	}
}

// A copy that says it moved more bytes than a number holds with those before it is met by the limit, too.
func TestMaxBytesOfCopy(t *testing.T) {
	s := tapescript.New(t)
	s.Open(3, "from", event.OpenCreat|2)
	from := s.Handle(3)
	s.On(event.OpFtruncate, 3, 0, 0, [6]uint64{3, 64 << 20})
	s.Open(4, "to", event.OpenCreat|2)
	to := s.Handle(4)
	s.Move(event.OpPwrite64, 4, 0, "xy")
	const all = 1<<63 - 1
	from.Open, to.Open, to.Arg = 3, 4, 2
	s.Add(event.Event{Op: event.OpCopyFileRange, Ret: all, Args: [6]uint64{3, 0, 4, 0, all},
		Files: []event.File{from, to}})
	into := filepath.Join(t.TempDir(), "out")
	_, err := Run(t.Context(), s.Close(), &Options{Into: into, MaxBytes: 1 << 20})
	if err == nil || !strings.Contains(err.Error(), "--max-bytes") {
		t.Errorf("error is %v, want one that names --max-bytes", err)
	}
}

// By default a replay takes what a tape's calls write, and space that is little beside it, but not whatever one of them
// asks for.
func TestBytesByDefault(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedLoop(t)
	testenv.NeedProgram(t, "mkfs.xfs")
	target := testenv.MountImage(t, "xfs", 200<<10) // an image with holes: space that is allocated takes none of it
	for _, c := range []struct {
		name string
		size uint64
		ok   bool
	}{
		{"6 GiB", 6 << 30, true},
		{"77 GB", 77e9, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tapescript.New(t)
			s.Open(3, "f", event.OpenCreat|2)
			s.On(event.OpWrite, 3, 1<<20, 0, [6]uint64{3, 1, 1 << 20},
				event.Buf{Arg: 1, Kind: event.KindBuf, Len: 1 << 20, Omitted: true})
			s.On(event.OpFallocate, 3, 0, 0, [6]uint64{3, 0, 0, c.size})
			rep, err := Run(t.Context(), s.Close(), &Options{Into: filepath.Join(target, c.name)})
			if c.ok && (err != nil || !rep.OK()) {
				t.Errorf("%v, %+v", err, rep)
			}
			if !c.ok && (err == nil || !strings.Contains(err.Error(), "--max-bytes")) {
				t.Errorf("error is %v, want one that names --max-bytes", err)
			}
		})
	}
	if got := enough(1<<62, 8); got < 1<<62 {
		t.Errorf("8 copies of 1<<62 bytes: %d", got)
	}
}

// A write writes what the tape has, and zeros behind it, also if it is more than is held in memory. It may have written
// less than it was asked to.
func TestWrites(t *testing.T) {
	for _, size := range []int64{1<<10 + 5, 40<<20 + 5} {
		for _, more := range []int64{0, 99} {
			t.Run(fmt.Sprint(size, " of ", size+more), func(t *testing.T) { testWrite(t, size, size+more) })
		}
	}
}

func testWrite(t *testing.T, size, asked int64) {
	s := tapescript.New(t)
	s.Open(3, "f", event.OpenCreat|2)
	s.On(event.OpPwrite64, 3, size, 0, [6]uint64{3, 1, uint64(asked), 3},
		event.Buf{Arg: 1, Kind: event.KindBuf, Len: asked, Inline: []byte("known")})
	into := filepath.Join(t.TempDir(), "out")
	rep, err := Run(context.Background(), s.Close(), &Options{Into: into})
	if err != nil || !rep.OK() {
		t.Fatalf("%v, %+v", err, rep)
	}
	found, err := filepath.Glob(filepath.Join(into, "*", "f"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	got, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	want := append([]byte("\x00\x00\x00known"), make([]byte, size-5)...)
	if !bytes.Equal(got, want) {
		t.Errorf("the file has %d bytes that begin with %q, want %d and %q", len(got), got[:min(len(got), 9)],
			len(want), want[:9])
	}
}
