// SPDX-License-Identifier: Apache-2.0

package viewmodel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/catlog"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/model/similar"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web/viewmodel"
	"github.com/iotape/iotape/web/viewmodel/viewmodeltest"
)

func open(t *testing.T, tapes ...*trace.Tape) *viewmodel.Scene {
	t.Helper()
	s, err := viewmodel.Open(t.Context(), tapes,
		&viewmodel.Options{Filter: func(_ *trace.Tape, text string) (func(*event.Event) bool, error) {
			g, err := predicate.New(text, nil)
			if err != nil {
				return nil, err
			}
			return g.NewMatcher().Match, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// all is a window of everything, with a row for each of the scene's.
func all(s *viewmodel.Scene, columns int) *viewmodel.Window {
	a := s.About()
	w := &viewmodel.Window{FromNS: a.FromNS, ToNS: a.ToNS, Columns: columns, Arrows: true}
	for i := range a.Rows {
		w.Rows = append(w.Rows, viewmodel.RowRef{Row: i})
	}
	return w
}

// TestUntimed tells a time that a foreign trace does not say from one of 0 ns.
func TestUntimed(t *testing.T) {
	tape, _ := formattest.Tape(t, func(im *format.Import) error {
		w, err := im.Host("")
		if err != nil {
			return err
		}
		for i, c := range []format.Call{{Untimed: true}, {}, {Exit: 50}} {
			c.Op, c.PID, c.TID, c.Enter = event.OpGetpid, 1, 1, uint64(100*(i+1))
			c.Exit += c.Enter
			if err := w.Call(&c); err != nil {
				return err
			}
		}
		return nil
	})
	s := open(t, tape)
	w := all(s, 200)
	list, _, err := s.List(t.Context(), w)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d calls, %v; want 3", len(list), err)
	}
	for i, want := range []string{"?", "0", "50"} {
		got := "?"
		if list[i].TookNS != nil {
			got = fmt.Sprint(*list[i].TookNS)
		}
		if got != want {
			t.Errorf("call %d took %s ns in the list, want %s", i, got, want)
		}
	}
	p, err := s.Window(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Rows {
		if len(r.Cells) >= viewmodel.CellFields && r.Cells[2] != -1 {
			t.Errorf("row %d: the first call's time is %d ns in the picture, want -1: not known", r.Row, r.Cells[2])
		}
	}
}

func TestRows(t *testing.T) {
	s := open(t, viewmodeltest.Tape(t, 100, "db"))
	a := s.About()
	var got []string
	for _, r := range a.Rows {
		got = append(got, strings.Repeat(" ", r.Depth)+r.Kind+" "+r.Name)
	}
	want := "process db 100\n thread db 100\n thread log 101\n process reader 200"
	if strings.Join(got, "\n") != want {
		t.Errorf("rows:\n%s\nwant:\n%s", strings.Join(got, "\n"), want)
	}
	if a.Rows[0].Below != 3 || a.Rows[1].Calls != 102 || a.Rows[2].Calls != 106 ||
		a.Rows[3].Calls != 100 || a.FromNS != 0 {
		t.Errorf("%+v, from %d", a.Rows, a.FromNS)
	}
}

// Whatever the grain, a picture has every call once, and all bytes.
func TestWindow(t *testing.T) {
	s := open(t, viewmodeltest.Tape(t, 1000, "db"))
	for _, columns := range []int{1, 7, 100, viewmodel.MaxColumns} {
		p, err := s.Window(t.Context(), all(s, columns))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct{ calls, failed, bytes int64 }{
			{2064, 1, 1000*4096 + 1000*300}, {1002, 1, 1000 * 4096}, {1062, 0, 1000 * 300}, {1000, 0, 1000 * 4096},
		} {
			var calls, failed, bytes int64
			r := p.Rows[i]
			for k := 0; k < len(r.Cells); k += viewmodel.CellFields {
				if r.Cells[k] < 0 || r.Cells[k] >= int64(columns) {
					t.Errorf("column %d of %d", r.Cells[k], columns)
				}
				calls, failed, bytes = calls+r.Cells[k+3], failed+r.Cells[k+4], bytes+r.Cells[k+5]
			}
			for k := 0; k < len(r.Spans); k += viewmodel.SpanFields {
				calls, failed, bytes = calls+1, failed+r.Spans[k+3], bytes+r.Spans[k+4]
			}
			if calls != want.calls || failed != want.failed || bytes != want.bytes {
				t.Errorf("%d columns, row %d: %d calls, %d failed, %d bytes, want %v", columns,
					i, calls, failed, bytes, want)
			}
		}
	}
}

// The overview has every call of every tape.
func TestOverview(t *testing.T) {
	s := open(t, viewmodeltest.Tape(t, 100, "one"), viewmodeltest.Tape(t, 50, "two"))
	p, err := s.Overview(t.Context(), 40)
	if err != nil {
		t.Fatal(err)
	}
	calls := int64(0)
	for k := 0; k < len(p.Rows[0].Cells); k += viewmodel.CellFields {
		calls += p.Rows[0].Cells[k+3]
	}
	if want := int64(3*150 + 6 + 3 + 2*2); calls != want {
		t.Errorf("%d calls, not %d", calls, want)
	}
}

// Zoomed in far enough, every call stands alone, at its place.
func TestZoom(t *testing.T) {
	s := open(t, viewmodeltest.Tape(t, 1000, "db"))
	w := &viewmodel.Window{FromNS: 500 * viewmodeltest.StepNS, ToNS: 511 * viewmodeltest.StepNS, Columns: 600,
		Rows: []viewmodel.RowRef{{Row: 3}}}
	p, err := s.Window(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	r := p.Rows[0]
	if len(r.Cells) != 0 || len(r.Spans) != 4*viewmodel.SpanFields {
		t.Fatalf("%v %v", r.Cells, r.Spans)
	}
	d, err := s.Event(0, uint64(r.Spans[6]))
	if err != nil {
		t.Fatal(err)
	}
	if d.FromNS != r.Spans[0] || d.ToNS-d.FromNS != r.Spans[1] || d.Row != 3 || !strings.Contains(d.Line, "read(") {
		t.Errorf("%+v is not at %v", d, r.Spans[:viewmodel.SpanFields])
	}
}

func TestRefusedWindows(t *testing.T) {
	s := open(t, viewmodeltest.Tape(t, 10, "db"))
	for _, w := range []viewmodel.Window{
		{FromNS: 1, ToNS: 1, Columns: 5}, {FromNS: 2, ToNS: 1, Columns: 5}, {ToNS: 9}, {ToNS: 9, Columns: viewmodel.MaxColumns + 1},
		{ToNS: 9, Columns: 5, Rows: []viewmodel.RowRef{{Row: 99}}}, {ToNS: 9, Columns: 5, Rows: []viewmodel.RowRef{{Row: -1}}},
		{ToNS: 9, Columns: 5, Rows: make([]viewmodel.RowRef, 257)}, {FromNS: -1 << 63, ToNS: 1<<63 - 1, Columns: 5},
	} {
		if _, err := s.Window(t.Context(), &w); !errors.Is(err, viewmodel.ErrWindow) {
			t.Errorf("%+v: %v", w, err)
		}
		if _, _, err := s.List(t.Context(), &w); !errors.Is(err, viewmodel.ErrWindow) {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// Arrows go from what forked to the child, and from its end to who waited.
func TestArrows(t *testing.T) {
	s := open(t, viewmodeltest.Tape(t, 40, "db"))
	if err := s.Order(); err != nil {
		t.Fatal(err)
	}
	w := all(s, 500)
	p, err := s.Window(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	reasons := s.About().Reasons
	got := map[string]bool{}
	for i := 0; i < len(p.Arrows); i += viewmodel.ArrowFields {
		a := p.Arrows[i : i+viewmodel.ArrowFields]
		got[reasons[a[5]]] = true
		if a[3] < 0 {
			t.Errorf("an arrow back in time: %v", a)
		}
	}
	if !got["fork"] || !got["wait"] {
		t.Errorf("arrows: %v", got)
	}
	wait, err := s.Find(t.Context(), 0, 0, "op = wait4")
	if err != nil || wait.Event == nil {
		t.Fatal(wait, err)
	}
	d, err := s.Event(0, wait.Event.Seq)
	if err != nil || !d.Ordered || len(d.Before) != 1 || d.Before[0].Why != "wait" {
		t.Errorf("before the wait: %+v %v", d, err)
	}
	back, err := s.Event(0, d.Before[0].Seq)
	if err != nil || len(back.After) != 1 || back.After[0].Seq != d.Seq {
		t.Errorf("after the end: %+v %v", back, err)
	}
}

func TestFind(t *testing.T) {
	s := open(t, viewmodeltest.Tape(t, 100, "db"))
	n := 0
	for from := uint64(0); ; {
		f, err := s.Find(t.Context(), 0, from, "op = fsync")
		if err != nil {
			t.Fatal(err)
		}
		if f.End {
			break
		}
		n, from = n+1, f.Next
	}
	if n != 6 {
		t.Errorf("%d syncs", n)
	}
	if _, err := s.Find(t.Context(), 0, 0, "op ="); err == nil {
		t.Error("half a filter is taken")
	}
	if _, err := s.Find(t.Context(), 7, 0, "failed"); !errors.Is(err, viewmodel.ErrNoEvent) {
		t.Error(err)
	}
}

func TestContent(t *testing.T) {
	s := open(t, viewmodeltest.Tape(t, 3, "db"))
	f, err := s.Find(t.Context(), 0, 0, "op = read")
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Content(0, f.Event.Seq, 0, 4090)
	if err != nil || len(b.Data) != 6 || b.Total != 4096 || b.Offset != 4090 {
		t.Errorf("%+v %v", b, err)
	}
	for _, x := range []struct {
		tape, index int
		seq         uint64
		offset      int64
	}{{1, 0, 2, 0}, {-1, 0, 2, 0}, {0, 9, 2, 0}, {0, -1, 2, 0}, {0, 0, 1 << 60, 0}, {0, 0, 2, -1}} {
		if _, err := s.Content(x.tape, x.seq, x.index, x.offset); !errors.Is(err, viewmodel.ErrNoEvent) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// Equal content is found as equal, a record that differs in two bytes as similar.
func TestSimilar(t *testing.T) {
	s := open(t, viewmodeltest.Tape(t, 20, "db"))
	look := func(filter string) *viewmodel.Similar {
		f, err := s.Find(t.Context(), 0, 0, filter)
		if err != nil || f.Event == nil {
			t.Fatal(f, err)
		}
		x, err := s.Similar(t.Context(), 0, f.Event.Seq)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	pages := look("op = write and bytes = 4096")
	if len(pages.Found) != 39 || !pages.All { // 20 writes and 20 reads, without itself
		t.Errorf("%d equal pages, %+v", len(pages.Found), pages)
	}
	for _, f := range pages.Found {
		if !f.Equal {
			t.Errorf("%+v is not equal", f)
		}
	}
	records := look("op = write and bytes = 300")
	if len(records.Found) != 19 {
		t.Fatalf("%d similar records", len(records.Found))
	}
	for _, f := range records.Found {
		if f.Equal || f.Shared < 250 || f.Jaccard < 0.3 {
			t.Errorf("%+v", f)
		}
	}
}

// signedLog is a log of CAT: contents of which it has signatures (two are one, a third is 0.9 of
// it, and one is another), and one of which it has nothing.
func signedLog() string {
	var b strings.Builder
	for i, first := range []int{1, 1, 2, 100, -1} {
		data := ""
		if first >= 0 {
			data = `,"data":{"signature":[`
			for k := range similar.CATHashes {
				data += fmt.Sprintf("%d,", first+k)
			}
			data = strings.TrimSuffix(data, ",") + "]}"
		}
		fmt.Fprintf(&b, `{"timestamp":%d,"type":"WR","thread":"1@a","pid":7,"filename":"/f%d","fd":%d,"size":4096,`+
			`"returned_value":4096%s}`+"\n", 1000+i, i, i+3, data)
	}
	return b.String()
}

// Contents that a log has no bytes of are compared by their signatures; of a content of which
// it has nothing, nothing is said.
func TestSimilarBySignatures(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cat.log")
	if err := os.WriteFile(name, []byte(signedLog()), 0o600); err != nil {
		t.Fatal(err)
	}
	tapes, _ := formattest.Import(t, &catlog.Format, name)
	s := open(t, slices.Collect(maps.Values(tapes))...)
	for _, c := range []struct{ file, by, want string }{
		{"/f0", "signatures of CAT", "/f1 equal, /f2 90 %; 1 unknown"},
		{"/f3", "signatures of CAT", "; 1 unknown"},
		{"/f4", "", "; 0 unknown"},
	} {
		f, err := s.Find(t.Context(), 0, 0, "op = write and path = "+c.file)
		if err != nil || f.Event == nil {
			t.Fatal(f, err)
		}
		x, err := s.Similar(t.Context(), 0, f.Event.Seq)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, y := range x.Found {
			how := fmt.Sprintf("%.0f %%", 100*y.Jaccard)
			if y.Equal {
				how = "equal"
			}
			_, file, _ := strings.Cut(y.Line, "</")
			file, _, _ = strings.Cut(file, ">")
			found = append(found, "/"+file+" "+how)
		}
		if got := fmt.Sprintf("%s; %d unknown", strings.Join(found, ", "), x.Unknown); got != c.want || x.By != c.by {
			t.Errorf("like %s by %q: %s, want %s by %q", c.file, x.By, got, c.want, c.by)
		}
	}
}

// The index is made once, kept in the tape, and made again if it is damaged or another
// tape's. Where nothing can be written the page works all the same.
func TestIndexFile(t *testing.T) {
	tape := viewmodeltest.Tape(t, 50, "db")
	name := filepath.Join(tape.Dir(), trace.TimelineName)
	calls := func() (n uint64) {
		s := open(t, tape)
		for _, r := range s.About().Rows {
			if r.Kind == "process" {
				n += r.Calls
			}
		}
		return n
	}
	first := calls()
	st, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if calls() != first {
		t.Error("the second time it is another picture")
	}
	if again, _ := os.Stat(name); !os.SameFile(st, again) {
		t.Error("the index was made twice")
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-40] ^= 1
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if calls() != first {
		t.Error("a damaged index is another picture")
	}
	other := viewmodeltest.Tape(t, 5, "other")
	if b, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other.Dir(), trace.TimelineName), b, 0o644); err != nil {
		t.Fatal(err)
	}
	if n := open(t, other).About().Rows[1].Calls; n != 7 {
		t.Errorf("with the index of another tape there are %d calls", n)
	}
	r, err := tape.Check(context.Background(), nil)
	if err != nil || len(r.Damage) > 0 || len(r.Notes) > 0 {
		t.Errorf("check: %+v %v", r, err)
	}
	s, err := viewmodel.Open(t.Context(), []*trace.Tape{viewmodeltest.Tape(t, 5, "memory")},
		&viewmodel.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := s.About().Rows[1].Calls; n != 7 {
		t.Errorf("in memory there are %d calls", n)
	}
}

// Two recordings stand beside each other by their clocks.
func TestTwoTapes(t *testing.T) {
	s := open(t, viewmodeltest.Tape(t, 5, "one"), viewmodeltest.Tape(t, 5, "two"))
	if err := s.Order(); err != nil {
		t.Fatal(err)
	}
	a := s.About()
	if len(a.Tapes) != 2 || a.Rows[0].Kind != "host" || a.Rows[0].Name != "one" ||
		a.Rows[a.Rows[0].Below+1].Name != "two" || len(a.Clocks) != 1 {
		t.Errorf("%+v", a)
	}
}

// A tape without a call has a picture, too.
func TestEmpty(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(&trace.Manifest{}); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	s := open(t, tape)
	if err := s.Order(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Window(t.Context(), all(s, 10)); err != nil {
		t.Error(err)
	}
	if _, err := s.Event(0, 0); !errors.Is(err, viewmodel.ErrNoEvent) {
		t.Error(err)
	}
}
