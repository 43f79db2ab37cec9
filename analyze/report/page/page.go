// SPDX-License-Identifier: Apache-2.0

package page

import (
	"io"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/jsonout"
)

// Page is a report.
type Page struct {
	Title    string
	Lines    []string // below the title: of what it is
	Sections []Section
	Parts    []Part // below the sections
}

// Part is what a page of several tapes says of one of them.
type Part struct {
	Name string
	Page *Page
}

// Section is one view of the data.
type Section struct {
	ID     string // one word: of links, of JSON and on the command line
	Title  string
	Note   string // what the numbers mean, in a sentence or two; "" if that is plain
	Blocks []Block
	Data   any // the same numbers for JSON
	// Lead sections stand before the picture.
	Lead bool
}

// Block is a part of a section: *Table, *Chart, *Bars, *Heat, *Flame,
// *Finding, *Fold or Line.
type Block interface {
	html(b *strings.Builder)
	text(b *strings.Builder)
}

// Line is a line of text.
type Line string

// Table has a head and rows of text. The first Left columns are set flush left; or, when
// Right is set, the first Right flush right and the others flush left.
type Table struct {
	Title       string
	Head        []string
	Left, Right int
	Rows        [][]string
	Of          int // how many rows there would be, if that is more
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

func (l Line) text(b *strings.Builder) { b.WriteString(report.Printable(string(l)) + "\n") }

func (t *Table) text(b *strings.Builder) {
	if t.Title != "" {
		b.WriteString(report.Printable(t.Title) + t.more() + "\n")
	}
	if len(t.Rows) == 0 {
		b.WriteString("  nothing\n")
		return
	}
	table := report.Table{Head: printable(t.Head), Left: t.Left, Right: t.Right}
	for _, row := range t.Rows {
		table.Add(printable(row)...)
	}
	table.Write(b)
}

func printable(cells []string) []string {
	list := make([]string, len(cells))
	for i, s := range cells {
		list[i] = report.Printable(s)
	}
	return list
}

func (t *Table) more() string {
	if t.Of > len(t.Rows) {
		return " (" + report.Count(uint64(len(t.Rows))) + " of " + report.Count(uint64(t.Of)) + ")"
	}
	return ""
}

// Text writes the page for a terminal. Of charts it has what a line can show.
func (p *Page) Text(w io.Writer) error {
	var b strings.Builder
	b.WriteString(report.Printable(p.Title) + "\n")
	for _, l := range p.Lines {
		b.WriteString(report.Printable(l) + "\n")
	}
	p.sectionsText(&b)
	for _, part := range p.Parts {
		b.WriteString("\n" + report.Printable(part.Name) + "\n")
		for _, l := range part.Page.Lines {
			b.WriteString(report.Printable(l) + "\n")
		}
		part.Page.sectionsText(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Page) sectionsText(b *strings.Builder) {
	for i := range p.Sections {
		s := &p.Sections[i]
		b.WriteString("\n" + strings.ToUpper(report.Printable(s.Title)) + "\n")
		for j, block := range s.Blocks {
			if j > 0 && !(isLine(block) && isLine(s.Blocks[j-1])) {
				b.WriteByte('\n')
			}
			block.text(b)
		}
	}
}

func isLine(b Block) bool { _, ok := b.(Line); return ok }

func (p *Page) data() map[string]any {
	v := map[string]any{}
	for i := range p.Sections {
		v[p.Sections[i].ID] = p.Sections[i].Data
	}
	return v
}

// JSON writes the data of the sections as one object with their IDs as names, behind the
// version, which is that of all fields: they are only ever added to. Parts are in "tapes".
func (p *Page) JSON(w io.Writer) error {
	v := p.data()
	v["version"] = 1
	if len(p.Parts) > 0 {
		var tapes []map[string]any
		for _, part := range p.Parts {
			d := part.Page.data()
			d["name"] = part.Name
			tapes = append(tapes, d)
		}
		v["tapes"] = tapes
	}
	return jsonout.Object(w, v)
}
