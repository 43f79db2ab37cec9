// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// one describes a small tape of one host.
type one struct {
	name        string
	clock, wall int64   // anchor
	exits       []int64 // ns, host's clock
	content     string
	status      int
	incomplete  string
	lost        uint64
}

func (o *one) write(t *testing.T, dir string) *trace.Tape {
	t.Helper()
	path := filepath.Join(dir, o.name+".tape")
	tw, err := trace.CreateTape(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	id, err := tw.AddChunk([]byte(o.content))
	if err != nil {
		t.Fatal(err)
	}
	mine, err := tw.AddChunk([]byte("of " + o.name))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range o.exits {
		ev := event.Event{Op: event.OpWrite, PID: 5, TID: 5, Enter: at - 1, Exit: at, Offset: -1, Count: -1,
			Files: []event.File{{FD: 3, Open: 1, Path: "/f"}},
			Bufs: []event.Buf{{Arg: 1, Kind: event.KindBuf, Len: int64(len(o.content) + 3 + len(o.name)),
				Refs: []event.Ref{{Chunk: id, Len: uint32(len(o.content))}, {Chunk: mine, Len: uint32(3 + len(o.name))}}}}}
		if err := tw.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	root := &tree.Manifest{Root: "/",
		Entries: []tree.Entry{{Path: "f", Type: tree.File, Size: int64(len(o.content)),
			Known:  tree.KnownSize | tree.KnownContent,
			Chunks: []tree.Chunk{{Len: uint32(len(o.content)), ID: id}}}}}
	if err := seal.WriteTree(tw, trace.SnapshotName, root); err != nil {
		t.Fatal(err)
	}
	m := &trace.Manifest{Hosts: []trace.Host{{Head: trace.Head{Host: o.name, Arch: "amd64",
		ClockNS: o.clock, WallNS: o.wall}}},
		ExitStatus: o.status, Incomplete: o.incomplete != "", Reason: o.incomplete}
	if o.lost > 0 {
		m.Losses = []trace.Loss{{Reason: "lost", Records: o.lost}}
	}
	if err := tw.Close(m); err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

func open(t *testing.T, path string) *trace.Tape {
	t.Helper()
	tp, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tp.Close() })
	return tp
}

func merged(t *testing.T, path string, tapes ...*trace.Tape) *trace.Tape {
	t.Helper()
	tw, err := trace.CreateTape(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	m, err := Tapes(context.Background(), tw, tapes, &Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(m); err != nil {
		t.Fatal(err)
	}
	tp := open(t, path)
	rep, err := tp.Check(context.Background(), nil)
	if err != nil || !rep.OK() {
		t.Fatalf("check: %v %v", rep, err)
	}
	return tp
}

// told is what a merged tape says, an event a line.
func told(t *testing.T, tp *trace.Tape) (lines []string) {
	t.Helper()
	opens := map[event.OpenID]string{}
	last := int64(-1 << 62)
	for ev, err := range tp.Events() {
		if err != nil {
			t.Fatal(err)
		}
		data, err := tp.Content(&ev.Bufs[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		h := tp.Host(ev.Host)
		lines = append(lines, fmt.Sprintf("%d %s %s", h.Wall(ev.Exit), h.Host, data))
		key := fmt.Sprint(ev.Host)
		if o, ok := opens[ev.Files[0].Open]; ok && o != key {
			t.Errorf("open file %d is of hosts %s and %s", ev.Files[0].Open, o, key)
		}
		opens[ev.Files[0].Open] = key
		if ev.Enter != ev.Exit-1 {
			t.Errorf("event took %d ns", ev.Exit-ev.Enter)
		}
		if ev.Exit < last && h.Wall(ev.Exit) > h.Wall(last) {
			t.Errorf("times of hosts cannot be compared: %d after %d", ev.Exit, last)
		}
		last = ev.Exit
	}
	return lines
}

var (
	// a's clock began long before b's; c has only the wall clock.
	a = one{name: "a", clock: 1000, wall: 1_000_000, exits: []int64{1010, 1030, 1020, 1050}, content: "same", lost: 2}
	b = one{name: "b", clock: 10, wall: 1_000_000, exits: []int64{25, 30, 70}, content: "same", status: 3, lost: 5}
	c = one{name: "c", exits: []int64{1_000_012}, content: "other", incomplete: "torn"}
)

var want = []string{
	"1000010 a sameof a",
	"1000012 c otherof c",
	"1000015 b sameof b",
	"1000020 b sameof b",
	"1000030 a sameof a",
	"1000020 a sameof a", // late in its tape, and late here
	"1000050 a sameof a",
	"1000060 b sameof b",
}

func TestTapes(t *testing.T) {
	dir := t.TempDir()
	tp := merged(t, filepath.Join(dir, "all.tape"), a.write(t, dir), b.write(t, dir), c.write(t, dir))
	if got := told(t, tp); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	m := tp.Manifest()
	if len(m.Hosts) != 3 || m.ExitStatus != 3 || !m.Incomplete || len(m.Losses) != 1 || m.Losses[0].Records != 7 {
		t.Errorf("manifest %+v", m)
	}
	if m.Content.Chunks != 5 { // same, other, and one of each
		t.Errorf("%d chunks, want 5", m.Content.Chunks)
	}
	if m.FirstNS < 0 {
		t.Errorf("times begin at %d", m.FirstNS)
	}
	for i, content := range []string{"same", "same", "other"} {
		r, err := tp.OpenFile(trace.HostFile(i, trace.SnapshotName))
		if err != nil {
			t.Fatal(err)
		}
		tr, err := tree.Decode(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		if data, err := tp.Chunk(tr.Lookup("f").Chunks[0].ID); err != nil || string(data) != content {
			t.Errorf("host %d: content of its snapshot is %q, %v", i, data, err)
		}
	}
}

// Merging what was merged is the same as merging all at once.
func TestTwice(t *testing.T) {
	dir := t.TempDir()
	ab := merged(t, filepath.Join(dir, "ab.tape"), a.write(t, dir), b.write(t, dir))
	tp := merged(t, filepath.Join(dir, "all.tape"), c.write(t, dir), ab)
	if got := told(t, tp); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if _, ok := tp.Manifest().Files[trace.HostFile(2, trace.SnapshotName)]; !ok {
		t.Errorf("files %v: b is host 2 now, and has a snapshot", tp.Manifest().Files)
	}
}

// A tape by itself stays as it is.
func TestOne(t *testing.T) {
	dir := t.TempDir()
	tp := merged(t, filepath.Join(dir, "x.tape"), a.write(t, dir))
	if _, ok := tp.Manifest().Files[trace.SnapshotName]; !ok {
		t.Errorf("files %v", tp.Manifest().Files)
	}
	if h := tp.Host(0); h.ClockNS != 1000 || tp.Manifest().FirstNS != 1009 {
		t.Errorf("clock %d, first %d", h.ClockNS, tp.Manifest().FirstNS)
	}
}

// A tape that is damaged is not merged.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	tp := a.write(t, dir)
	tw, err := trace.CreateTape(filepath.Join(dir, "x.tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	if err := corrupt(filepath.Join(tp.Dir(), trace.ContentName)); err != nil {
		t.Fatal(err)
	}
	if m, err := Tapes(context.Background(), tw, []*trace.Tape{tp}, nil); err == nil {
		t.Errorf("merged to %+v", m)
	}
	if _, err := Tapes(context.Background(), tw, nil, nil); err == nil {
		t.Error("merged nothing")
	}
}

// corrupt changes a byte of the first block of a file.
func corrupt(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	b[40] ^= 1
	return os.WriteFile(name, b, 0o644)
}
