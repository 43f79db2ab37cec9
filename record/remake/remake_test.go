// SPDX-License-Identifier: Apache-2.0

package remake_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/remake"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/anon"
	"github.com/iotape/iotape/transform/slice"
)

// recorder keeps what is reported.
type recorder struct {
	sealing.Silent
	lines []string
}

func (r *recorder) Note(line string) { r.lines = append(r.lines, line) }

// said fails the test unless a line with a text was reported.
func (r *recorder) said(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(strings.Join(r.lines, "\n"), text) {
		t.Errorf("reported %q, want a line with %q", r.lines, text)
	}
}

func options() (*remake.Options, *recorder) {
	r := &recorder{}
	return &remake.Options{Reporter: r, Program: "test"}, r
}

func open(t *testing.T, name string) *trace.Tape {
	t.Helper()
	tape, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}

const recorded = "../../model/history/testdata/make.tape"

// text returns the operations and names of a tape's events as lines.
func text(t *testing.T, tape *trace.Tape) string {
	t.Helper()
	var b strings.Builder
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(ev.Op.String())
		for i := range ev.Paths {
			b.WriteString(" " + ev.Paths[i].Raw)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestSlice(t *testing.T) {
	in, dir := open(t, recorded), t.TempDir()
	o, r := options()
	out := filepath.Join(dir, "part.tape")
	if err := remake.Slice(t.Context(), out, in, &slice.Options{From: 10, To: 30}, o); err != nil {
		t.Fatal(err)
	}
	r.said(t, "20 of ")
	if got := open(t, out).Manifest().Counts.Events; got < 20 {
		t.Errorf("the slice has %d events, want 20 and the state before", got)
	}

	out = filepath.Join(dir, "empty.tape")
	x, err := predicate.Parse("op = swapon")
	if err != nil {
		t.Fatal(err)
	}
	g, err := predicate.Compile(x, slice.FilterOptions(in))
	if err != nil {
		t.Fatal(err)
	}
	if err := remake.Slice(t.Context(), out, in, &slice.Options{Filter: g}, o); !errors.Is(err, slice.ErrEmpty) {
		t.Errorf("nothing fits: %v, want %v", err, slice.ErrEmpty)
	}
	if left, err := filepath.Glob(out + "*"); err != nil || len(left) > 0 {
		t.Errorf("an empty slice leaves %q, %v", left, err)
	}
}

func TestMerge(t *testing.T) {
	a, b := open(t, recorded), open(t, recorded)
	o, r := options()
	out := filepath.Join(t.TempDir(), "all.tape")
	if err := remake.Merge(t.Context(), out, []*trace.Tape{a, b}, o); err != nil {
		t.Fatal(err)
	}
	r.said(t, "2 recordings of 2 tapes")
	if got, want := open(t, out).Manifest().Counts.Events, 2*a.Manifest().Counts.Events; got != want {
		t.Errorf("the merged tape has %d events, want %d", got, want)
	}
}

// TestAnonymise makes the keys, and restores all that was replaced.
func TestAnonymise(t *testing.T) {
	in, dir := open(t, recorded), t.TempDir()
	public, again := filepath.Join(dir, "public.tape"), filepath.Join(dir, "again.tape")
	keys := filepath.Join(dir, "keys")
	o, r := options()
	survey, err := remake.Anonymise(t.Context(), public, in, keys, &anon.Options{Fields: anon.AllFields}, o)
	if err != nil || survey == nil {
		t.Fatal(survey, err)
	}
	r.said(t, "made "+keys)
	want := text(t, in)
	if hidden := open(t, public); text(t, hidden) == want {
		t.Error("the names of the anonymised tape are those of the recording")
	}
	err = remake.Reveal(t.Context(), again, open(t, public), keys, &anon.Options{Fields: anon.AllFields}, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, open(t, again)); got != want {
		t.Errorf("revealed:\n%.400s\nwant:\n%.400s", got, want)
	}
	// There is a tape of this name, and it stays.
	if _, err := remake.Anonymise(t.Context(), again, in, keys, &anon.Options{Fields: anon.AllFields}, o); err == nil {
		t.Error("anonymise replaced a tape")
	}
}

func TestRepair(t *testing.T) {
	dir := t.TempDir()
	damaged := filepath.Join(dir, "x.tape")
	if err := os.CopyFS(damaged, os.DirFS(recorded)); err != nil {
		t.Fatal(err)
	}
	o, r := options()
	if complete, err := remake.Repair(t.Context(), damaged, "", o); err != nil || !complete {
		t.Fatalf("of a sound tape: %v, %v, want true", complete, err)
	}
	r.said(t, "nothing is wrong")
	name := filepath.Join(damaged, "events")
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, fi.Size()/2); err != nil {
		t.Fatal(err)
	}
	if complete, err := remake.Repair(t.Context(), damaged, "", o); err != nil || complete {
		t.Fatalf("of half of the events: %v, %v, want false", complete, err)
	}
	repaired := open(t, filepath.Join(dir, "x.repaired.tape"))
	if rep, err := remake.Check(t.Context(), repaired, nil); err != nil || !rep.OK() {
		t.Errorf("the repaired tape is checked: %+v, %v", rep, err)
	}
	if _, err := os.Stat(damaged); errors.Is(err, fs.ErrNotExist) {
		t.Error("the damaged tape is gone")
	}
}
