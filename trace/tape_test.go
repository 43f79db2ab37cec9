// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
)

// drawEvent makes an event with arbitrary values in all fields.
func drawEvent(t *rapid.T, chunks uint64) *event.Event {
	u32 := func(l string) uint32 { return rapid.Uint32().Draw(t, l) }
	i64 := func(l string) int64 { return rapid.Int64().Draw(t, l) }
	arg := func() int8 { return rapid.Int8Range(-1, 5).Draw(t, "arg") }
	size := func(l string) int64 { return rapid.Int64Range(0, event.MaxBytes).Draw(t, l) }
	memory := func() int8 { return rapid.Int8Range(0, 5).Draw(t, "arg") }
	text := func(l string) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, l)) }
	n := func(l string, most int) int { return rapid.IntRange(0, most).Draw(t, l) }
	ev := &event.Event{
		Op: event.Op(rapid.Uint16().Draw(t, "op")), Kind: event.EventKind(rapid.Uint8().Draw(t, "kind")), NR: u32("nr"),
		Host: rapid.Uint32Range(0, 2).Draw(t,
			"host"), PID: u32("pid"), TID: u32("tid"), PPID: u32("ppid"), PGID: u32("pgid"),
		SID: u32("sid"), UID: u32("uid"), GID: u32("gid"), Comm: text("comm"), Enter: i64("enter"),
		Exit: i64("exit"), CPU: i64("cpu"), DelayBefore: u32("before"), DelayWithin: u32("within"),
		Ret: i64("ret"), Errno: syscall.Errno(u32("errno")), Offset: i64("offset"), Count: i64("count"),
		Child: u32("child"),
		Flags: event.EventFlags(rapid.Uint16().Draw(t, "flags")),
	}
	for i := range ev.Args {
		ev.Args[i] = rapid.Uint64().Draw(t, "args")
	}
	for range n("files", 3) {
		ev.Files = append(ev.Files, event.File{
			Arg: arg(), FD: rapid.Int32().Draw(t,
				"fd"), Open: event.OpenID(rapid.Uint64().Draw(t, "open")), Known: rapid.Bool().Draw(t, "known"),
			Dev: rapid.Uint64().Draw(t, "dev"), Ino: rapid.Uint64().Draw(t,
				"ino"), Mode: u32("mode"), Flags: u32("oflags"), Nlink: u32("nlink"),
			UID: u32("fuid"), GID: u32("fgid"), Size: i64("size"), Pos: i64("pos"), Rdev: rapid.Uint64().Draw(t,
				"rdev"), Path: text("fpath"),
		})
	}
	for range n("paths", 2) {
		ev.Paths = append(ev.Paths, event.Path{Arg: memory(), Raw: text("raw"), Abs: text("abs")})
	}
	for range n("bufs", 3) {
		b := event.Buf{
			Arg: memory(),
			Dir: event.Dir(rapid.Uint8().Draw(t, "dir")), Kind: event.Kind(rapid.Uint8().Draw(t, "bkind")),
			Omitted: rapid.Bool().Draw(t, "omitted"), Len: size("len"), Missing: size("missing"),
		}
		if rapid.Bool().Draw(t, "inline") {
			b.Inline = append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "bytes")...)
		}
		for range n("parts", 3) {
			b.Parts = append(b.Parts, i64("part"))
		}
		for range n("refs", 3) {
			b.Refs = append(b.Refs, event.Ref{Chunk: rapid.Uint64Range(0, chunks).Draw(t, "chunk"), Off: u32("off"),
				Len: u32("rlen")})
		}
		for range n("hashes", 3) {
			b.Hashes = append(b.Hashes, event.Digest(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash")))
		}
		if n := rapid.IntRange(0, 99).Draw(t, "sketch"); n > 50 {
			b.Sketch = bytes.Repeat([]byte{byte(n)}, n-50)
		}
		ev.Bufs = append(ev.Bufs, b)
	}
	return ev
}

func TestEventsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const chunks = 3
		dir, err := os.MkdirTemp("", "tape")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		w, err := CreateTape(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		for i := range chunks {
			if _, err := w.AddChunk([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		var want []*event.Event
		for range rapid.IntRange(0, 12).Draw(t, "events") {
			ev := drawEvent(t, chunks)
			if err := w.Write(ev); err != nil {
				t.Fatal(err)
			}
			want = append(want, ev)
		}
		if err := w.Close(&Manifest{Hosts: make([]Host, 3)}); err != nil {
			t.Fatal(err)
		}
		tape, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tape.Close()
		var got []*event.Event
		for ev, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, ev.Clone())
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}

// simple fills ev with a plain read or write, as a load does.
func simple(ev *event.Event, i int, rng *rand.Rand) {
	paths := [...]string{"/srv/db/000005.log", "/srv/db/MANIFEST", "/srv/db/000007.ldb", "/var/log/app.log"}
	k := rng.IntN(len(paths))
	files := ev.Files[:0]
	*ev = event.Event{
		Op: event.OpPwrite64, NR: 18, PID: 1000, TID: 1000 +
			uint32(i%3), PPID: 999, PGID: 1000, SID: 1000, UID: 1000, GID: 1000, Comm: "db_bench",
		Enter: int64(i)*2500 + rng.Int64N(900), CPU: int64(i/100) * 4000000, Ret: 4096, Offset: int64(i) * 4096,
		Count: 4096,
		Args:  [6]uint64{uint64(3 + k), 0x7f5500000000 + uint64(k)<<12, 4096, uint64(i) * 4096},
	}
	ev.Exit = ev.Enter + 700 + rng.Int64N(800)
	ev.Files = append(files, event.File{
		FD: int32(3 + k), Open: event.OpenID(k + 1), Known: true, Dev: 2049, Ino: uint64(52000 +
			k), Mode: 0o100644, Flags: 2, Nlink: 1,
		UID: 1000, GID: 1000, Size: int64(i) * 4096, Pos: 0, Path: paths[k],
	})
}

// makeTape writes a tape with n plain events, the content of every tenth of which
// is in chunks, and an extra file.
func makeTape(t testing.TB, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	w, err := CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var ev event.Event
	for i := range n {
		simple(&ev, i, rng)
		if i%10 == 0 {
			id, err := w.AddChunk(fmt.Appendf(nil, "content %d %x", i%70, rng.Uint64()))
			if err != nil {
				t.Fatal(err)
			}
			ev.Bufs = []event.Buf{{Arg: 1, Kind: event.KindBuf, Len: 10,
				Refs: []event.Ref{{Chunk: id, Off: 2, Len: 8}, {Len: 2}}, Missing: 2}}
		} else {
			ev.Bufs = []event.Buf{{Arg: 1, Kind: event.KindBuf, Len: 3, Inline: []byte("abc")}}
		}
		if err := w.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	f, err := w.Create(SnapshotName)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "a tree\n")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(&Manifest{Program: "test", Hosts: []Host{{Head{Host: "h", WallNS: 1}}}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// use reads all of a tape and returns the first error.
func use(t testing.TB, dir string) error {
	tape, err := Open(dir)
	if err != nil {
		return err
	}
	defer tape.Close()
	for ev, err := range tape.Events() {
		if err != nil {
			return err
		}
		for i := range ev.Bufs {
			if _, _, err := tape.ContentZero(&ev.Bufs[i], nil); err != nil {
				return err
			}
		}
	}
	r, err := tape.Check(t.Context(), nil)
	if err != nil {
		return err
	}
	if !r.OK() {
		return r.Damage[0].Err
	}
	return nil
}

func TestTape(t *testing.T) {
	dir := makeTape(t, 10000)
	if err := use(t, dir); err != nil {
		t.Fatal(err)
	}
	tape, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	m := tape.Manifest()
	if want := (Counts{Events: 10000, Calls: 10000, Threads: 3, Processes: 1, Files: 4}); m.Counts != want {
		t.Errorf("counts %+v, want %+v", m.Counts, want)
	}
	f, err := tape.OpenFile(SnapshotName)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "a tree\n" {
		t.Errorf("snapshot %q, %v", b, err)
	}
	r := tape.NewEventReader()
	var ev event.Event
	for _, seq := range []uint64{9999, 0, 4095, 4096, 7000} {
		if err := r.Seek(seq); err != nil {
			t.Fatal(err)
		}
		if err := r.Next(&ev); err != nil || ev.Seq != seq || ev.Offset != int64(seq)*4096 || len(ev.Bufs) != 1 {
			t.Errorf("seek %d: event %d at %d, %v", seq, ev.Seq, ev.Offset, err)
		}
		if seq%10 != 0 && string(ev.Bufs[0].Inline) != "abc" {
			t.Errorf("seek %d: inline %q", seq, ev.Bufs[0].Inline)
		}
	}
	if err := r.Seek(10000); err != nil || r.Next(&ev) != io.EOF {
		t.Errorf("seek to the end: %v", err)
	}
	if b := tape.Split(3); len(b) != 4 || b[3] != 10000 {
		t.Errorf("split %v", b)
	}
}

func ref(chunk uint64, off, n uint32) event.Ref { return event.Ref{Chunk: chunk, Off: off, Len: n} }

func TestContent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.tape")
	w, err := CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), MaxChunkBytes/16)
	var ids []uint64
	for _, c := range [][]byte{[]byte("hello"), []byte("world"), []byte("hello"), big} {
		id, err := w.AddChunk(c)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if d := cmp.Diff([]uint64{1, 2, 1, 3}, ids); d != "" {
		t.Error(d)
	}
	if _, err := w.AddChunk(nil); err == nil {
		t.Error("empty chunk is accepted")
	}
	if err := w.Write(&event.Event{Bufs: []event.Buf{{Refs: []event.Ref{{Chunk: 4}}}}}); err == nil {
		t.Error("reference to an unknown chunk is accepted")
	}
	if err := w.Close(&Manifest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateTape(dir); err == nil {
		t.Error("tape is overwritten")
	}
	tape, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	if c, err := tape.Chunk(3); err != nil || !bytes.Equal(c, big) {
		t.Errorf("big chunk: %d bytes, %v", len(c), err)
	}
	for _, c := range []struct {
		name    string
		buf     event.Buf
		want    string
		missing *MissingError
		zero    string
	}{
		{"inline", event.Buf{Len: 2, Inline: []byte("ab")}, "ab", nil, "ab"},
		{"refs", event.Buf{Len: 6, Refs: []event.Ref{ref(1, 1, 3), ref(2, 2, 3)}}, "ellrld", nil, "ellrld"},
		{"gap", event.Buf{Len: 6, Refs: []event.Ref{ref(1, 0, 2), ref(0, 0, 1), ref(0, 0, 1), ref(2, 0, 2)}}, "", &MissingError{Pos: 2, Len: 2}, "he\x00\x00wo"},
		{"tail", event.Buf{Len: 4, Refs: []event.Ref{ref(1, 0, 2)}}, "", &MissingError{Pos: 2, Len: 2}, "he\x00\x00"},
		{"omitted", event.Buf{Len: 3, Omitted: true}, "", &MissingError{Len: 3, Omitted: true}, "\x00\x00\x00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := tape.Content(&c.buf, []byte(">"))
			if me := (*MissingError)(nil); errors.As(err, &me) != (c.missing != nil) ||
				me != nil && *me != *c.missing || string(got) != ">"+c.want {
				t.Errorf("Content: %q, %v", got, err)
			}
			if got, _, err := tape.ContentZero(&c.buf, nil); err != nil || string(got) != c.zero {
				t.Errorf("ContentZero: %q, %v", got, err)
			}
		})
	}
	for _, b := range []event.Buf{{Refs: []event.Ref{ref(9, 0, 1)}}, {Refs: []event.Ref{ref(1, 4, 9)}},
		{Len: 1 << 60}} {
		if _, err := tape.Content(&b, nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	tape, err := Open(makeTape(t, 50000))
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	r := tape.NewEventReader()
	var ev event.Event
	if n := testing.AllocsPerRun(40000, func() {
		if err := r.Next(&ev); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations per event", n)
	}
}

func TestDedupKeepsSmall(t *testing.T) {
	const n = 1 << 18
	d := newDedup()
	rng := rand.New(rand.NewPCG(3, 4))
	hash := func() (h [32]byte) {
		for i := range h[:16] {
			h[i] = byte(rng.Uint32())
		}
		return h
	}
	first := hash()
	if id, fresh := d.add(&first); id != 1 || !fresh {
		t.Fatalf("first chunk is %d", id)
	}
	for range n {
		h := hash()
		d.add(&h)
		if id, fresh := d.add(&h); fresh || id != d.n {
			t.Fatalf("chunk %d is %d again", d.n, id)
		}
	}
	if id, fresh := d.add(&first); id != 1 || fresh {
		t.Errorf("first chunk is now %d", id)
	}
	if b := len(d.keys)*dedupPage*16 + 4*len(d.slots); b > 40*n {
		t.Errorf("%d bytes for %d chunks", b, n)
	}
}

var update = flag.Bool("update", false, "write the frozen tape of the present version, if there is none")

// TestOldTapesStayReadable reads the frozen sample of each version.
func TestOldTapesStayReadable(t *testing.T) {
	for v := 1; v <= TapeVersion; v++ {
		dir := filepath.Join("testdata", fmt.Sprintf("v%d", v), "sample.tape")
		if *update && v == TapeVersion {
			if err := os.Rename(makeTape(t, 50), dir); err != nil {
				t.Fatal(err)
			}
		}
		if err := use(t, dir); err != nil {
			t.Fatal(err)
		}
		tape, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tape.Close()
		n := int64(0)
		for ev, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Op != event.OpPwrite64 || ev.Ret != 4096 || ev.Offset != n*4096 || ev.Comm != "db_bench" ||
				ev.Files[0].Dev != 2049 || ev.DelayBefore|ev.DelayWithin != 0 || ev.Flags&event.Delays != 0 {
				t.Errorf("event %d: %+v", n, ev)
			}
			if n%10 == 0 {
				b, missing, err := tape.ContentZero(&ev.Bufs[0], nil)
				if err != nil || missing != 2 || !bytes.HasPrefix(b, []byte("ntent ")) {
					t.Errorf("event %d: content %q, %d missing, %v", n, b, missing, err)
				}
			}
			n++
		}
		if n != 50 {
			t.Errorf("%d events", n)
		}
	}
}
