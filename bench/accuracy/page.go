// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
)

// Page is the report as a page.
func (r *Report) Page() *page.Page {
	p := &page.Page{Title: "How well replays tell the time", Lines: r.problems()}
	for _, f := range r.Figures() {
		blocks := append([]page.Block{f.Table}, f.Pictures...)
		p.Sections = append(p.Sections, page.Section{ID: f.Name, Title: f.Title, Note: f.Note, Blocks: blocks})
	}
	return p
}

// problems says what there is no figure of, and why.
func (r *Report) problems() (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Skipped)) {
		lines = append(lines, fmt.Sprintf("no %s: %s", name, report.Printable(r.Skipped[name])))
	}
	if r.Interrupted {
		lines = append(lines, "the study was interrupted: this is what there was so far")
	}
	if len(r.LeftOut) > 0 {
		lines = append(lines, "not measured: "+strings.Join(r.LeftOut, ", "))
	}
	said := map[string]bool{}
	for _, row := range r.Rows {
		for _, m := range slices.Sorted(maps.Keys(row.Failed)) {
			if why := row.Failed[m]; !said[row.App+m] {
				said[row.App+m] = true
				lines = append(lines, fmt.Sprintf("%s of %s on %s: %s", m, row.App, row.Store, report.Printable(why)))
			}
		}
	}
	return lines
}

// Markdown writes all tables.
func (r *Report) Markdown(w io.Writer) error { return r.markdown(w, r.Figures()) }

// Tables writes the tables for a document: the errors, and what holding nodes comes to, by
// period and by how many are held.
func (r *Report) Tables(w io.Writer) error {
	return r.markdown(w, slices.DeleteFunc(r.Figures(), func(f Figure) bool {
		return !slices.Contains([]string{"summary", "figure-8", "figure-9", "figure-10"}, f.Name) ||
			len(f.Table.Rows) == 0
	}))
}

func (r *Report) markdown(w io.Writer, figures []Figure) error {
	cell := strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", "\n", " ")
	var b strings.Builder
	for _, f := range figures {
		fmt.Fprintf(&b, "#### %s: %s\n\n%s\n\n", strings.ToUpper(f.Name[:1])+f.Name[1:], f.Title, f.Note)
		line := func(cells []string) {
			for _, c := range cells {
				b.WriteString("| " + cell.Replace(c) + " ")
			}
			b.WriteString("|\n")
		}
		line(f.Table.Head)
		rule := make([]string, len(f.Table.Head))
		for i := range rule {
			rule[i] = "--:"
			if i < f.Table.Left {
				rule[i] = "---"
			}
		}
		line(rule)
		for _, row := range f.Table.Rows {
			line(row)
		}
		b.WriteByte('\n')
	}
	for _, p := range r.problems() {
		fmt.Fprintf(&b, "* %s\n", cell.Replace(p))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// The lines of a document between which the tables stand.
const beginLine, endLine = "<!-- accuracy: begin -->\n", "<!-- accuracy: end -->"

// Between puts text between the two lines of a document.
func Between(doc, text []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(doc, []byte(beginLine))
	_, after, also := bytes.Cut(rest, []byte(endLine))
	if !ok || !also {
		return nil, fmt.Errorf("there is no line %s, or none %s behind it", strings.TrimSpace(beginLine), endLine)
	}
	return slices.Concat(before, []byte(beginLine), text, []byte(endLine), after), nil
}
