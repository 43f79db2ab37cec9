// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// Reads of pages are compared by their hashes, whatever call they are of and whoever wrote
// the pages; of a page that is another one the report has the bytes.
func TestReadsOfChunks(t *testing.T) {
	page := func(c string) string { return strings.Repeat(c, 4096) }
	s := tapescript.New(t)
	s.Open(3, "f", event.OpenCreat|2)
	other := strings.Repeat("b", 100) + strings.Repeat("c", 3996)
	r := s.Chunks(page("a"), page("b"), other, page("d"), page("e"))
	a, b, c, d, e := r[0], r[1], r[2], r[3], r[4]
	s.Stored(event.OpPwrite64, 0, a, b)
	s.Stored(event.OpPwritev, 8192, d, a)
	part := b
	part.Off, part.Len = 100, 50
	good := func() {
		s.Stored(event.OpPread64, 0, a)
		s.Stored(event.OpPread64, 4096, b, d, a)
		s.Stored(event.OpPreadv, 0, a, b, d)
		s.Stored(event.OpPread64, 4096+100, part)
	}
	good()
	s.Stored(event.OpPread64, 4096, c)     // is b
	s.Stored(event.OpPreadv, 0, a, b, e)   // is a, b, d
	s.Stored(event.OpPread64, 8192, e, a)  // is d, a
	s.Stored(event.OpPwrite64, 4096, c, e) // and now they are
	s.Stored(event.OpPreadv, 0, a, c, e)
	tape := s.Close()
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
	if rep, err := Run(t.Context(), tape, &Options{Into: t.TempDir(), Checks: CheckReturns}); err != nil ||
		rep.Different != 0 {
		t.Errorf("content that nobody asked for: %v, %+v", err, rep.Mismatches)
	}
}

// Content beyond what one batch holds: the steps keep theirs, and in the end all agree.
func TestBatchesOfContent(t *testing.T) {
	s := tapescript.New(t)
	s.Open(3, "f", event.OpenCreat|2)
	var pages []string
	for i := range 96 {
		pages = append(pages, strings.Repeat(string(rune('A'+i)), 4096))
	}
	refs := s.Chunks(pages...)
	for i := range 40 {
		n := 1 + i*7%90
		s.Stored(event.OpPwrite64, 0, refs[:n]...)
		s.Stored(event.OpPread64, 0, refs[:n]...)
		refs = append(refs[1:], refs[0])
	}
	rep, err := Run(t.Context(), s.Close(), &Options{Into: t.TempDir(), Checks: CheckAll &^ CheckTree})
	if err != nil || rep.Different != 0 || rep.Uncompared != 0 {
		t.Errorf("%v, %+v", err, rep)
	}
}
