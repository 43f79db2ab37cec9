// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/analyze/report"
)

// Dot writes a path as a graph for Graphviz: moves by process, and what leads from one to
// another.
func Dot(w io.Writer, f *flow.Flow, p *flow.Path) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "digraph flow {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n  "+
		"edge [fontname=\"sans-serif\", fontsize=9];\n")
	lanes, order := byProcess(f, p)
	for i, name := range order {
		fmt.Fprintf(b, "  subgraph cluster_%d {\n    label=%s;\n", i, quote(name))
		for _, id := range lanes[name] {
			text, err := label(f, id)
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "    m%d [label=%s];\n", id, quote(strings.Join(text, "\n")))
		}
		b.WriteString("  }\n")
	}
	for _, e := range p.Edges {
		style := ""
		switch {
		case e.Changed:
			style = ", color=red, penwidth=2"
		case e.Why == flow.Elsewhere:
			style = ", style=dashed"
		}
		fmt.Fprintf(b, "  m%d -> m%d [label=%s%s];\n", e.From, e.To, quote(e.Why.String()+", "+how(&e)), style)
	}
	b.WriteString("}\n")
	return b.Flush()
}

// quote writes a string of the language of Graphviz.
func quote(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = report.Printable(lines[i])
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

// byProcess returns the moves of each process, and the processes in the order of their
// first ones.
func byProcess(f *flow.Flow, p *flow.Path) (lanes map[string][]int, order []string) {
	lanes = map[string][]int{}
	for _, id := range p.Moves {
		name := ProcessName(f, f.Move(id).Process)
		if lanes[name] == nil {
			order = append(order, name)
		}
		lanes[name] = append(lanes[name], id)
	}
	return lanes, order
}

// label is what stands in the box of a move.
func label(f *flow.Flow, id int) ([]string, error) {
	m := f.Move(id)
	ev, err := f.Event(id)
	if err != nil {
		return nil, err
	}
	dir := "from"
	if m.Write {
		dir = "to"
	}
	where := f.ObjectName(m.Object)
	if len(where) > 40 {
		where = "…" + strings.ToValidUTF8(where[len(where)-39:], "")
	}
	return []string{fmt.Sprintf("%s %s %s %s", f.EventName(m.Event), ev.Spec().Name, report.Bytes(uint64(m.Bytes)),
		dir), where}, nil
}

// Sizes of the picture, in pixels.
const (
	laneWidth = 300
	rowHeight = 54
	boxWidth  = 270
	boxHeight = 36
	margin    = 30
	top       = 50
	maxDrawn  = 500 // moves
)

// SVG writes a path as a space-time diagram: a column for each process, time downwards,
// and an arrow for each edge; what was changed on the way is red.
func SVG(w io.Writer, f *flow.Flow, p *flow.Path) error {
	moves := p.Moves[:min(len(p.Moves), maxDrawn)]
	lanes, order := byProcess(f, &flow.Path{Moves: moves})
	column := map[int]int{}
	for i, name := range order {
		for _, id := range lanes[name] {
			column[id] = i
		}
	}
	row := map[int]int{}
	for i, id := range moves {
		row[id] = i
	}
	width, height := 2*margin+max(len(order), 1)*laneWidth, top+margin+max(len(moves), 1)*rowHeight
	x := func(id int) int { return margin + column[id]*laneWidth + laneWidth/2 }
	y := func(id int) int { return top + row[id]*rowHeight + rowHeight/2 }
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`role="img" aria-label="flow of data" font-family="sans-serif" font-size="11">`+"\n", width, height, width,
		height)
	b.WriteString(`<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" ` +
		`orient="auto"><path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>` + "\n")
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	for i, name := range order {
		at := margin + i*laneWidth + laneWidth/2
		fmt.Fprintf(b, `<text x="%d" y="24" text-anchor="middle" font-weight="bold">%s</text><line x1="%d" `+
			`y1="34" x2="%d" y2="%d" stroke="#ddd"/>`+"\n", at, html.EscapeString(report.Printable(name)), at, at,
			height-margin)
	}
	for _, e := range p.Edges {
		if _, ok := row[e.From]; !ok {
			continue
		}
		if _, ok := row[e.To]; !ok {
			continue
		}
		color, dash := "#467", ""
		if e.Changed {
			color = "#c22"
		}
		if e.Why == flow.Elsewhere {
			dash = ` stroke-dasharray="4 3"`
		}
		x1, y1, x2, y2 := x(e.From), y(e.From)+boxHeight/2, x(e.To), y(e.To)-boxHeight/2
		bend := 0
		if x1 == x2 && row[e.To]-row[e.From] > 1 {
			bend = laneWidth/2 - 4
		}
		fmt.Fprintf(b, `<path d="M%d %dC%d %d %d %d %d %d" fill="none" stroke="%s"%s `+
			`marker-end="url(#a)"><title>%s</title></path>`+"\n",
			x1, y1, x1+bend, y1+14, x2+bend, y2-14, x2, y2, color, dash, html.EscapeString(e.Why.String()+", "+how(&e)))
	}
	for _, id := range moves {
		text, err := label(f, id)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s" stroke="#467"/><text x="%d" `+
			`y="%d" text-anchor="middle">%s</text><text x="%d" y="%d" text-anchor="middle" fill="#555">%s</text>`+"\n",
			x(id)-boxWidth/2, y(id)-boxHeight/2, boxWidth, boxHeight, fill(uint32(f.Move(id).Content)), x(id),
			y(id)-3, html.EscapeString(report.Printable(text[0])), x(id), y(id)+12,
			html.EscapeString(report.Printable(text[1])))
	}
	if len(p.Moves) > len(moves) {
		fmt.Fprintf(b, `<text x="%d" y="%d">%s more are not drawn</text>`+"\n", margin, height-8,
			report.Count(uint64(len(p.Moves)-len(moves))))
	}
	b.WriteString("</svg>\n")
	return b.Flush()
}

// fill is the colour of a content: equal content has one.
func fill(content uint32) string {
	if content == 0 {
		return "#f4f4f4"
	}
	return fmt.Sprintf("hsl(%d 70%% 88%%)", content*137%360)
}
