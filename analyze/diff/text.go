// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"io"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/jsonout"
)

// maxNamesShown limits the lists of names in the text.
const maxNamesShown = 20

// Text writes the report for people: the differences by operation, the first one, the files
// that only one tape has, and the hunks in the form of a unified diff.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	r.sums(&b)
	r.begins(&b)
	names(&b, "-", "A", r.OnlyA)
	names(&b, "+", "B", r.OnlyB)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if r.Same() {
		_, err := fmt.Fprintln(w, "all compared calls are the same")
		return err
	}
	fmt.Fprintf(w, "--- %s\n+++ %s\n", report.Printable(r.A.Name), report.Printable(r.B.Name))
	for i := range r.Threads {
		if t := &r.Threads[i]; t.Removed+t.Added > 0 {
			if err := t.text(w); err != nil {
				return err
			}
		}
	}
	if r.Hidden > 0 {
		_, err := fmt.Fprintf(w, "%s that differ are not shown\n", report.Plural(r.Hidden, "more call", "more calls"))
		return err
	}
	return nil
}

// sums writes the differences by operation.
func (r *Report) sums(b *strings.Builder) {
	fmt.Fprintf(b, "A: %s, %s by %s\n", report.Printable(r.A.Name), report.Plural(r.A.Calls, "call", "calls"),
		report.Plural(r.A.Threads, "thread", "threads"))
	fmt.Fprintf(b, "B: %s, %s by %s\n\n", report.Printable(r.B.Name), report.Plural(r.B.Calls, "call", "calls"),
		report.Plural(r.B.Threads, "thread", "threads"))
	t := report.Table{Head: []string{"operation", "calls A", "B", "", "bytes A", "B", "", "time A",
		"B", "errors A", "B"}, Left: 1}
	same := 0
	for i := range r.Ops {
		o := &r.Ops[i]
		if o.A.Count == o.B.Count && o.A.Bytes == o.B.Bytes && o.A.Errors == o.B.Errors {
			same++
			continue
		}
		t.Add(o.Op, report.Count(o.A.Count), report.Count(o.B.Count), delta(o.A.Count, o.B.Count, report.Count),
			report.Bytes(o.A.Bytes), report.Bytes(o.B.Bytes), delta(o.A.Bytes, o.B.Bytes, report.Bytes),
			report.Duration(o.A.TimeNS), report.Duration(o.B.TimeNS), report.Count(o.A.Errors),
			report.Count(o.B.Errors))
	}
	if t.Rows() > 0 {
		t.Write(b)
	}
	if same > 0 {
		fmt.Fprintf(b, "%s with as many calls, bytes and errors\n", report.Plural(same, "operation", "operations"))
	}
	b.WriteByte('\n')
}

// delta writes by how much B has more.
func delta(a, b uint64, unit func(uint64) string) string {
	switch {
	case b > a:
		return "+" + unit(b-a)
	case b < a:
		return "-" + unit(a-b)
	}
	return ""
}

// begins writes the first difference.
func (r *Report) begins(b *strings.Builder) {
	p := r.First
	if p == nil {
		return
	}
	fmt.Fprintf(b, "the first call that differs, in %s:\n", report.Printable(p.Command))
	for _, s := range []struct {
		sign string
		seq  *uint64
		text string
	}{{"-", p.SeqA, p.TextA}, {"+", p.SeqB, p.TextB}} {
		if s.seq != nil {
			fmt.Fprintf(b, "%s event %d: %s\n", s.sign, *s.seq, s.text)
		}
	}
	b.WriteByte('\n')
}

func names(b *strings.Builder, sign, side string, list []string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "files only in %s\n", side)
	for _, n := range list[:min(len(list), maxNamesShown)] {
		fmt.Fprintf(b, "%s %s\n", sign, report.Printable(n))
	}
	if more := len(list) - maxNamesShown; more > 0 {
		fmt.Fprintf(b, "%s and %s more\n", sign, report.Count(uint64(more)))
	}
	b.WriteByte('\n')
}

// text writes the hunks of a thread.
func (t *ThreadDiff) text(w io.Writer) error {
	who := func(id *ThreadID) string {
		if id == nil {
			return "none"
		}
		return fmt.Sprint(id.TID)
	}
	fmt.Fprintf(w, "thread %s -> %s: %s: %s the same, -%d +%d", who(t.A), who(t.B), report.Printable(t.Command),
		report.Plural(t.Same, "call", "calls"), t.Removed, t.Added)
	if t.Coarse {
		fmt.Fprint(w, " (perhaps not the shortest)")
	}
	fmt.Fprintln(w)
	for i := range t.Hunks {
		h := &t.Hunks[i]
		fmt.Fprintf(w, "@@ -%d,%d +%d,%d @@\n", h.StartA, h.CallsA, h.StartB, h.CallsB)
		for k := range h.Lines {
			if _, err := fmt.Fprintf(w, "%s%s\n", h.Lines[k].What, h.Lines[k].Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// JSON writes the report as one object.
func (r *Report) JSON(w io.Writer) error {
	return jsonout.Object(w, struct {
		Version int  `json:"version"`
		Same    bool `json:"same"`
		*Report
	}{1, r.Same(), r})
}
