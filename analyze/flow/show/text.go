// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/analyze/report"
)

// Limits of what is shown; there is more in JSON.
const (
	maxRows     = 400
	maxFindings = 10 // of a kind
	maxFrom     = 3  // origins of a move
)

// Text writes the numbers, the path if there is one, and the findings.
func Text(w io.Writer, f *flow.Flow, p *flow.Path) error {
	var b strings.Builder
	s := f.Stats()
	fmt.Fprintf(&b, "%s of %s moved %s by %s; %s of content, %s\n", report.Plural(s.Events, "event", "events"),
		report.Plural(s.Hosts, "recording", "recordings"),
		report.Bytes(uint64(s.Bytes)), report.Plural(s.Moves, "move",
			"moves"), report.Bytes(uint64(s.ContentBytes)),
		report.Plural(s.Contents, "different one", "different ones"))
	for _, n := range f.Notes() {
		fmt.Fprintf(&b, "note: %s\n", report.Printable(n))
	}
	if p != nil {
		b.WriteByte('\n')
		if err := pathText(&b, f, p); err != nil {
			return err
		}
	}
	if err := findingsText(&b, f); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Numbers writes a table of what can be asked for, with the values.
func Numbers(w io.Writer, f *flow.Flow, p *flow.Path) error {
	t := report.Table{Head: []string{"value", "name", "what it is"}, Right: 1}
	for _, n := range f.Numbers(p) {
		t.Add(fmt.Sprint(n.Value), n.Name, n.About)
	}
	return t.Write(w)
}

func pathText(b *strings.Builder, f *flow.Flow, p *flow.Path) error {
	edges := map[int][]flow.Edge{}
	for _, e := range p.Edges {
		edges[e.To] = append(edges[e.To], e)
	}
	t := report.Table{Head: []string{"event", "bytes", "at", " ", "where", "process", "call", "from"}, Right: 3}
	for i, id := range p.Moves {
		if i == maxRows {
			break
		}
		m := f.Move(id)
		ev, err := f.Event(id)
		if err != nil {
			return err
		}
		dir, at := "←", "–"
		if m.Write {
			dir = "→"
		}
		if m.At >= 0 {
			at = report.Count(uint64(m.At))
		}
		t.Add(f.EventName(m.Event), report.Count(uint64(m.Bytes)), at, dir, report.Printable(f.ObjectName(m.Object)),
			report.Printable(ProcessName(f, m.Process)), ev.Spec().Name, from(f, edges[id]))
	}
	if err := t.Write(b); err != nil {
		return err
	}
	switch {
	case p.More:
		fmt.Fprintf(b, "… and more: a path has at most %s moves\n", report.Count(flow.MaxPath))
	case len(p.Moves) > maxRows:
		fmt.Fprintf(b, "… and %s more (--json has all)\n", report.Plural(len(p.Moves)-maxRows, "move", "moves"))
	case len(p.Moves) == 0:
		b.WriteString("no way leads from the one to the other\n")
	}
	return nil
}

// ProcessName is how a process is called, with its host if there are several.
func ProcessName(f *flow.Flow, p *flow.Process) string {
	return fmt.Sprintf("%s%s[%d]", f.HostPrefix(p.Host), p.Comm, p.PID)
}

// from says where a move has its content from.
func from(f *flow.Flow, edges []flow.Edge) string {
	var parts []string
	for i, e := range edges {
		if i == maxFrom {
			parts = append(parts, fmt.Sprintf("and %d more", len(edges)-i))
			break
		}
		parts = append(parts, f.EventName(f.Move(e.From).Event)+" "+e.Why.String()+", "+how(&e))
	}
	return strings.Join(parts, "; ")
}

// how says how much of a move's content is that of the one before.
func how(e *flow.Edge) string {
	switch {
	case e.Changed:
		return fmt.Sprintf("CHANGED, %s the same", percent(e.Similarity))
	case e.Estimated:
		return fmt.Sprintf("similar by %s", percent(e.Similarity))
	case e.Bytes == e.Of:
		return "all"
	}
	return fmt.Sprintf("%s at %s", report.Plural(uint64(max(e.Bytes, 0)), "byte", "bytes"),
		report.Count(uint64(max(e.Off, 0))))
}

// percent writes a part of 1; only all of it is 100 %.
func percent(v float64) string { return fmt.Sprintf("%d %%", int(100*v+1e-4)) }

// findingsText writes the findings, the first of each kind.
func findingsText(b *strings.Builder, f *flow.Flow) error {
	list := f.Findings()
	totals := map[string]int64{}
	for _, n := range f.Numbers(nil) {
		totals[n.Name] = n.Value
	}
	if len(list) == 0 {
		b.WriteString("\nno findings\n")
		return nil
	}
	for _, p := range flow.Problems {
		shown, of := 0, 0
		for i := range list {
			x := &list[i]
			if x.Problem != p {
				continue
			}
			if of++; shown >= maxFindings {
				continue
			}
			shown++
			fmt.Fprintf(b, "\n%s: %s\n", p, report.Printable(x.Text))
			if err := where(b, f, x); err != nil {
				return err
			}
			if x.Diff != nil {
				diffText(b, x.Diff)
			}
		}
		if of > shown {
			fmt.Fprintf(b, "… %s: %s in all\n", p, report.Count(uint64(totals[string(p)])))
		}
	}
	return nil
}

// where names the events of a finding.
func where(b *strings.Builder, f *flow.Flow, x *flow.Finding) error {
	var names []string
	for _, id := range x.Moves {
		ev, err := f.Event(id)
		if err != nil {
			return err
		}
		names = append(names, fmt.Sprintf("%s %s", f.EventName(f.Move(id).Event), ev.Spec().Name))
	}
	sep := ", "
	if x.Diff != nil {
		sep = " → "
	}
	fmt.Fprintf(b, "  events %s\n", strings.Join(names, sep))
	if x.Decide != "" {
		fmt.Fprintf(b, "  confidence: %s; to decide it: %s\n", x.Confidence, x.Decide)
	}
	return nil
}

// diffText shows the bytes around the first that differs, one line above the other.
func diffText(b *strings.Builder, d *flow.Diff) {
	const width = 16
	n := max(len(d.Before), len(d.After))
	if n == 0 {
		return
	}
	start := d.Context / width * width
	if start == d.Context && start >= width {
		start -= width
	}
	for from := max(start, 0); from < n; from += width {
		x, y := d.Before[min(from, len(d.Before)):min(from+width, len(d.Before))], d.After[min(from,
			len(d.After)):min(from+width, len(d.After))]
		if from > d.Context && bytes.Equal(x, y) {
			break
		}
		fmt.Fprintf(b, "  - %08x  %s\n", d.FromFirst-d.Context+from, hexLine(x, width))
		fmt.Fprintf(b, "  + %08x  %s\n", d.First-d.Context+from, hexLine(y, width))
		var marks strings.Builder
		for i := range max(len(x), len(y)) {
			if i < len(x) && i < len(y) && x[i] == y[i] {
				marks.WriteString("   ")
			} else {
				marks.WriteString("^^ ")
			}
		}
		if m := strings.TrimRight(marks.String(), " "); m != "" {
			fmt.Fprintf(b, "              %s\n", m)
		}
	}
}

func hexLine(x []byte, width int) string {
	var b strings.Builder
	for i := range width {
		if i < len(x) {
			fmt.Fprintf(&b, "%02x ", x[i])
		} else {
			b.WriteString("   ")
		}
	}
	b.WriteString(" |")
	for _, c := range x {
		if c < ' ' || c > '~' {
			c = '.'
		}
		b.WriteByte(c)
	}
	return b.String() + "|"
}
