package replay

import (
	"bytes"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// What was seen of a chunk is found again, for the same bytes only, and the memory for it
// is bounded.
func TestKnown(t *testing.T) {
	k := newKnown()
	data := []byte("0123456789abcdefghijklmnopqrstuvwxyz")
	k.see(&event.Buf{Len: 36, Inline: data[:4], Refs: []event.Ref{{Chunk: 0, Len: 2}, {Chunk: 5, Len: 10}, {Chunk: 6, Off: 3, Len: 10}, {Chunk: 7, Len: 99}}}, data)
	for _, tt := range []struct {
		ref  event.Ref
		want []byte
	}{
		{event.Ref{Chunk: 5, Len: 10}, data[6:16]},
		{event.Ref{Chunk: 5, Len: 9}, nil},
		{event.Ref{Chunk: 5, Off: 1, Len: 10}, nil},
		{event.Ref{Chunk: 6, Off: 3, Len: 10}, nil}, // not from its beginning
		{event.Ref{Chunk: 6, Len: 10}, nil},
		{event.Ref{Chunk: 7, Len: 99}, nil}, // there was less of it
		{event.Ref{Chunk: 5, Len: 0}, nil},
		{event.Ref{Chunk: 0, Len: 2}, nil},
		{event.Ref{Chunk: 1 << 63, Len: 2}, nil},
	} {
		got, ok := k.sum(tt.ref)
		if ok != (tt.want != nil) || ok && got != xxh3.Hash128(tt.want) {
			t.Errorf("%+v: known %v, %x", tt.ref, ok, got)
		}
	}
	// All that is known: nothing is taken out of a tape, of which there is none here.
	parts, ok := k.parts(nil, &event.Buf{Len: 20, Refs: []event.Ref{{Chunk: 5, Len: 10}, {Chunk: 5, Len: 10}}}, nil)
	twice := append(bytes.Clone(data[6:16]), data[6:16]...)
	if !ok || !same(parts, twice) || same(parts, twice[:19]) || same(parts, twice[:10]) || same(parts, append(twice, 'x')) || same(parts, data[:20]) {
		t.Errorf("two of a chunk: %v, %+v", ok, parts)
	}
	for _, b := range []event.Buf{
		{Len: 10},
		{Len: 11, Refs: []event.Ref{{Chunk: 5, Len: 10}}},
		{Len: 10, Inline: data[:0:0], Refs: []event.Ref{{Chunk: 5, Len: 5}, {Len: 5}}},
		{Len: 11, Inline: data[:1], Refs: []event.Ref{{Chunk: 5, Len: 10}}},
	} {
		if _, ok := k.parts(nil, &b, nil); ok {
			t.Errorf("%+v is known", b)
		}
	}

	for n := range uint64(maxKnownPages + 10) {
		k.note(event.Ref{Chunk: n * knownChunks, Len: 1}, xxh3.Uint128{Lo: n})
	}
	if len(k.pages) != maxKnownPages || len(k.order) != maxKnownPages {
		t.Errorf("%d pages, %d in order, at most %d", len(k.pages), len(k.order), maxKnownPages)
	}
	if _, ok := k.sum(event.Ref{Chunk: 5, Len: 10}); ok {
		t.Error("the oldest is still known")
	}
	if got, ok := k.sum(event.Ref{Chunk: (maxKnownPages + 9) * knownChunks, Len: 1}); !ok || got.Lo != maxKnownPages+9 {
		t.Error("the newest is not known")
	}
}

// chunks stores pages in a script's tape, and returns a reference to each.
func (s *script) chunks(pages ...string) (refs []event.Ref) {
	s.t.Helper()
	for _, p := range pages {
		id, err := s.w.AddChunk([]byte(p))
		if err != nil {
			s.t.Fatal(err)
		}
		refs = append(refs, event.Ref{Chunk: id, Len: uint32(len(p))})
	}
	return refs
}

// stored adds a read or write, of one buffer or a vector of one, of what is in chunks.
func (s *script) stored(op event.Op, off int64, refs ...event.Ref) {
	s.t.Helper()
	a, n := event.Lookup(op).Args[1], int64(0)
	for _, r := range refs {
		n += int64(r.Len)
	}
	ev := event.Event{Op: op, Ret: n, Offset: off, Count: n, Args: [6]uint64{3, 0x1000, uint64(n), uint64(off)},
		Files: []event.File{{Arg: 0, FD: 3, Known: true, Mode: 0o100644, Ino: s.ino}},
		Bufs:  []event.Buf{{Arg: 1, Dir: a.Dir, Kind: a.Kind, Len: n, Refs: refs}}}
	if a.Kind == event.KindVec {
		ev.Bufs[0].Parts = []int64{n}
		ev.Args[2] = 1
	}
	s.add(ev)
}

// Reads of pages are compared by their hashes, whatever call they are of and whoever wrote
// the pages; of a page that is another one the report has the bytes.
func TestReadsOfChunks(t *testing.T) {
	page := func(c string) string { return strings.Repeat(c, 4096) }
	s := newScript(t)
	s.open(3, "f", effect.OCreat|2)
	other := strings.Repeat("b", 100) + strings.Repeat("c", 3996)
	r := s.chunks(page("a"), page("b"), other, page("d"), page("e"))
	a, b, c, d, e := r[0], r[1], r[2], r[3], r[4]
	s.stored(event.OpPwrite64, 0, a, b)
	s.stored(event.OpPwritev, 8192, d, a)
	part := b
	part.Off, part.Len = 100, 50
	good := func() {
		s.stored(event.OpPread64, 0, a)
		s.stored(event.OpPread64, 4096, b, d, a)
		s.stored(event.OpPreadv, 0, a, b, d)
		s.stored(event.OpPread64, 4096+100, part)
	}
	good()
	s.stored(event.OpPread64, 4096, c)     // is b
	s.stored(event.OpPreadv, 0, a, b, e)   // is a, b, d
	s.stored(event.OpPread64, 8192, e, a)  // is d, a
	s.stored(event.OpPwrite64, 4096, c, e) // and now they are
	s.stored(event.OpPreadv, 0, a, c, e)
	tape := s.close()
	rep, err := Run(t.Context(), tape, &Options{Into: t.TempDir(), Checks: CheckAll &^ CheckTree})
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]string{
		{`"cccccccccccccccc" at byte 100`, `"bbbbbbbbbbbbbbbb" at byte 100`},
		{`"eeeeeeeeeeeeeeee" at byte 8192`, `"dddddddddddddddd" at byte 8192`},
		{`"eeeeeeeeeeeeeeee" at byte 0`, `"dddddddddddddddd" at byte 0`},
	}
	if len(rep.Mismatches) != len(want) || rep.Uncompared != 0 {
		t.Fatalf("%d uncompared; differences: %+v", rep.Uncompared, rep.Mismatches)
	}
	for i, m := range rep.Mismatches {
		if m.Field != "content" || m.Expected != want[i][0] || m.Got != want[i][1] {
			t.Errorf("difference %d: %s is %s, not %s; want %q", i, m.Field, m.Got, m.Expected, want[i])
		}
	}
	if rep, err := Run(t.Context(), tape, &Options{Into: t.TempDir(), Checks: CheckReturns}); err != nil || rep.Different != 0 {
		t.Errorf("content that nobody asked for: %v, %+v", err, rep.Mismatches)
	}
}

// Content beyond what one batch holds: the steps keep theirs, and in the end all agree.
func TestBatchesOfContent(t *testing.T) {
	s := newScript(t)
	s.open(3, "f", effect.OCreat|2)
	var pages []string
	for i := range 96 {
		pages = append(pages, strings.Repeat(string(rune('A'+i)), 4096))
	}
	refs := s.chunks(pages...)
	for i := range 40 {
		n := 1 + i*7%90
		s.stored(event.OpPwrite64, 0, refs[:n]...)
		s.stored(event.OpPread64, 0, refs[:n]...)
		refs = append(refs[1:], refs[0])
	}
	rep, err := Run(t.Context(), s.close(), &Options{Into: t.TempDir(), Checks: CheckAll &^ CheckTree})
	if err != nil || rep.Different != 0 || rep.Uncompared != 0 {
		t.Errorf("%v, %+v", err, rep)
	}

	b := new(batch)
	first := append(b.room(100), "first"...)
	b.bytes = first
	for i := range 50 {
		b.bytes = append(b.room(50_000), bytes.Repeat([]byte{byte(i)}, 50_000)...)
	}
	if string(first) != "first" || b.content == 0 {
		t.Errorf("the first part is %q, %d bytes are held", first, b.content)
	}
	b.empty()
	if cap(b.bytes) > keptBytes || len(b.bytes) > 0 || b.content != 0 {
		t.Errorf("an empty batch keeps %d bytes, holds %d", cap(b.bytes), b.content)
	}
}
