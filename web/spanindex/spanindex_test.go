// SPDX-License-Identifier: Apache-2.0

package spanindex_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web/spanindex"
)

// build makes an index of spans by line.
func build(t interface{ Fatal(...any) }, lines [][]spanindex.Span, extra string) (*spanindex.Index, []byte) {
	var file bytes.Buffer
	b := spanindex.NewBuilder(&file)
	for i, spans := range lines {
		for k := range spans {
			if err := b.Add(i, &spans[k]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.Finish([]byte(extra)); err != nil {
		t.Fatal(err)
	}
	x, err := spanindex.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return x, file.Bytes()
}

// drawSpans draws the spans of a line: crowded, apart, long and short.
func drawSpans(t *rapid.T) []spanindex.Span {
	var list []spanindex.Span
	at, id := rapid.Int64Range(-1e12, 1e12).Draw(t, "start"), uint64(0)
	for range rapid.IntRange(0, 40).Draw(t, "bursts") {
		at += rapid.SampledFrom([]int64{0, 1, 1000, 1e9}).Draw(t, "gap")
		long := rapid.SampledFrom([]int64{0, 1, 50, 1e6}).Draw(t, "long")
		for range rapid.IntRange(1, 40).Draw(t, "spans") {
			id += rapid.Uint64Range(1, 3).Draw(t, "id")
			s := spanindex.Span{From: at, To: at + long, ID: id, Kind: uint8(id % spanindex.Kinds), Failed: id%3 == 0}
			s.Untimed = long == 0 && id%5 == 0
			if id%2 == 0 {
				s.Bytes, s.Content = id, uint32(id)
			}
			at = s.To + 1
			list = append(list, s)
		}
	}
	return list
}

// What a window shows is what is in it: nothing is lost, nothing is twice, and whatever
// is longer than the grain stands alone.
func TestMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := [][]spanindex.Span{drawSpans(t), nil, drawSpans(t)}
		x, _ := build(t, lines, "extra")
		if string(x.Extra()) != "extra" || x.Lines() > 3 {
			t.Fatal(string(x.Extra()), x.Lines())
		}
		for i := range x.Lines() {
			spans := lines[i]
			whole := x.Sum(i)
			if whole.N != uint64(len(spans)) {
				t.Fatalf("line %d has %d spans, not %d", i, whole.N, len(spans))
			}
			if len(spans) == 0 {
				continue
			}
			first, last := spans[0].From, spans[len(spans)-1].To
			w := spanindex.Window{From: rapid.Int64Range(first-5, last+5).Draw(t, "from"),
				Grain: rapid.SampledFrom([]int64{0, 10, 1e5, 1e9, 1e12}).Draw(t, "grain")}
			w.To = rapid.Int64Range(w.From, last+5).Draw(t, "to")
			var got []spanindex.Mark
			if err := x.Marks(i, w, func(m *spanindex.Mark) { got = append(got, *m) }); err != nil {
				t.Fatal(err)
			}
			next := 0
			for _, m := range got {
				if m.N > 1 && m.To-m.From > w.Grain {
					t.Fatalf("%d spans over %d ns are one mark at a grain of %d", m.N, m.To-m.From, w.Grain)
				}
				// All spans that were passed over are outside.
				for ; next < len(spans) && spans[next].ID < m.First; next++ {
					if s := spans[next]; s.To >= w.From && s.From <= w.To {
						t.Fatalf("span %d is missing", s.ID)
					}
				}
				want := spanindex.Mark{}
				for n := uint64(0); n < m.N; n++ {
					s := spans[next]
					next++
					one := spanindex.Mark{From: s.From, To: s.To, N: 1, Bytes: s.Bytes, First: s.ID, Last: s.ID}
					one.Busy[s.Kind] = max(s.To-s.From, 1)
					if s.Failed {
						one.Failed = 1
					}
					if s.Untimed {
						one.Untimed = 1
					}
					want.Add(&one)
				}
				if m.From != want.From || m.To != want.To || m.Failed != want.Failed || m.Bytes != want.Bytes ||
					m.Busy != want.Busy || m.Untimed != want.Untimed || m.Last != want.Last {
					t.Fatalf("%+v, not %+v", m, want)
				}
			}
			for ; next < len(spans); next++ {
				if s := spans[next]; s.To >= w.From && s.From <= w.To {
					t.Fatalf("span %d is missing at the end", s.ID)
				}
			}
			k := rapid.IntRange(0, len(spans)-1).Draw(t, "near")
			before, at, after, ok, err := x.Near(i, spans[k].ID)
			if err != nil || ok != [3]bool{k > 0, true, k+1 < len(spans)} || at != spans[k] || ok[0] &&
				before != spans[k-1] || ok[2] && after != spans[k+1] {
				t.Fatalf("near %d: %v %v %v %v %v", k, before, at, after, ok, err)
			}
		}
	})
}

// The work for a picture is bounded by its columns, wherever the spans are crowded.
func TestFewMarks(t *testing.T) {
	for name, gap := range map[string]int64{"bursts": 1e9, "evenly": 1} {
		t.Run(name, func(t *testing.T) { testFewMarks(t, gap) })
	}
}

func testFewMarks(t *testing.T, gap int64) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var spans []spanindex.Span
	for at, id := int64(0), uint64(1); id < 200_000; id++ {
		at += rnd.Int64N(200)
		if id%1000 == 0 {
			at += rnd.Int64N(gap)
		}
		spans = append(spans, spanindex.Span{From: at, To: at + 50, ID: id})
		at += 50
	}
	x, file := build(t, [][]spanindex.Span{spans}, "")
	if len(file) > 14*len(spans) {
		t.Errorf("%d bytes for %d spans", len(file), len(spans))
	}
	last := spans[len(spans)-1].To
	for length := last; length > 1000; length -= length / 3 {
		const columns = 500
		n := 0
		var work spanindex.Work
		w := spanindex.Window{From: last / 3, To: last/3 + length, Grain: length / columns, Work: &work}
		if err := x.Marks(0, w, func(*spanindex.Mark) { n++ }); err != nil {
			t.Fatal(err)
		}
		// Of each level so many sums are opened as are longer than a column, and 8 seen for
		// each.
		const most = 8 * (columns + 2)
		if n > 3*most || work.Pages > columns+2 || work.Groups > most || work.Spans > most || work.Nodes > 8*most {
			t.Errorf("%d marks for %d columns of a window of %d ns: %+v", n, columns, length, work)
		}
	}
	err := x.Marks(0, spanindex.Window{To: last, Limit: 10}, func(*spanindex.Mark) {})
	if !errors.Is(err, spanindex.ErrLimit) {
		t.Errorf("beyond the limit: %v", err)
	}
}

func TestRefused(t *testing.T) {
	b := spanindex.NewBuilder(&bytes.Buffer{})
	for _, s := range []spanindex.Span{{From: 2, To: 1}, {Kind: spanindex.Kinds}} {
		if b.Add(0, &s) == nil {
			t.Errorf("%+v is taken", s)
		}
	}
	if b.Add(spanindex.MaxLines, &spanindex.Span{}) == nil || b.Add(-1, &spanindex.Span{}) == nil {
		t.Error("a line beyond the limit is taken")
	}
	if err := b.Add(0, &spanindex.Span{ID: 5}); err != nil {
		t.Fatal(err)
	}
	if b.Add(0, &spanindex.Span{ID: 4}) == nil {
		t.Error("IDs that fall are taken")
	}
}

// Damage is an error, never a panic or a great amount of memory.
func FuzzOpen(f *testing.F) {
	_, file := build(f, [][]spanindex.Span{{{From: 1, To: 5, ID: 1, Bytes: 7, Content: 9},
		{From: 6, To: 6, ID: 2, Failed: true}}, nil, {{ID: 3}}}, "x")
	f.Add(file)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := spanindex.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if !errors.Is(err, trace.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		for i := range x.Lines() {
			n := uint64(0)
			err := x.Marks(i, spanindex.Window{From: -1 << 62, To: 1 << 62}, func(m *spanindex.Mark) { n += m.N })
			if err != nil && !errors.Is(err, trace.ErrCorrupt) {
				t.Fatal(err)
			}
			if _, _, _, _, err := x.Near(i, 2); err != nil && !errors.Is(err, trace.ErrCorrupt) {
				t.Fatal(err)
			}
		}
	})
}

// Each byte that is changed is noticed: by Open, or when its page is read.
func TestDamage(t *testing.T) {
	_, file := build(t, [][]spanindex.Span{{{From: 1, To: 5, ID: 1, Bytes: 7}, {From: 6, To: 6, ID: 2}}}, "x")
	for i := 8; i < len(file); i++ {
		b := bytes.Clone(file)
		b[i] ^= 0x40
		x, err := spanindex.Open(bytes.NewReader(b), int64(len(b)))
		if err == nil {
			err = x.Marks(0, spanindex.Window{From: -10, To: 10}, func(*spanindex.Mark) {})
		}
		if !errors.Is(err, trace.ErrCorrupt) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
}
