// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/flame"
)

// Flame shows a tree of functions: each is as wide as its share of the sum, above those that it called.
type Flame struct {
	Title   string
	Unit    Unit
	Measure flame.Measure
	Root    *flame.Node
}

// Limits of a drawing.
const (
	flameRow   = 16.0    // height of a function
	flameDepth = 100     // rows
	flameRects = 4000    // functions, the widest parts first as they come
	flameLeast = .4      // width of a function that is drawn
	letter     = 6.0     // width of a letter, about
	flameLines = 20      // of text
	flameShare = 1. / 50 // least share of a line of text
)

func (f *Flame) html(b *strings.Builder) {
	sum := f.Measure.Of(f.Root.Weight)
	if sum == 0 {
		return
	}
	d := flameDrawing{f: f, sum: float64(sum)}
	d.level(f.Root, 0, wide, 0)
	figure(b, f.Title, func() {
		fmt.Fprintf(b, "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", wide,
			flameRow*float64(d.deepest), escape(f.Title))
		b.WriteString(d.b.String())
		b.WriteString("</svg>\n")
	})
}

// flameDrawing is a drawing under way.
type flameDrawing struct {
	f       *Flame
	b       strings.Builder
	sum     float64
	rects   int
	deepest int
}

// level draws the functions that another one called, and what they called.
func (d *flameDrawing) level(n *flame.Node, x, width float64, depth int) {
	own := float64(d.f.Measure.Of(n.Weight))
	if depth == flameDepth || own <= 0 {
		return
	}
	for _, c := range n.Children {
		v := float64(d.f.Measure.Of(c.Weight))
		w := width * v / own
		if w >= flameLeast && d.rects < flameRects {
			d.rects++
			d.deepest = max(d.deepest, depth+1)
			d.rect(c.Name, x, w, depth, v)
			d.level(c, x, w, depth+1)
		}
		x += w
	}
}

func (d *flameDrawing) rect(name string, x, w float64, depth int, v float64) {
	y := flameRow * float64(depth)
	fmt.Fprintf(&d.b, "<rect class=\"f%d\" fill-opacity=\".35\" x=\"%.2f\" y=\"%g\" width=\"%.2f\" height=\"%g\">"+
		"<title>%s: %s, %s</title></rect>\n", crc32.ChecksumIEEE([]byte(name))%6, x, y, max(w-.3, .1), flameRow-1,
		escape(name), escape(d.f.Unit.Format(v)), escape(Percent.Format(100*v/d.sum)))
	if room := int(w/letter) - 1; room >= 3 {
		label := []rune(name)
		if len(label) > room {
			label = append(label[:room-1], '…')
		}
		fmt.Fprintf(&d.b, "<text x=\"%.2f\" y=\"%g\" pointer-events=\"none\">%s</text>\n", x+2, y+12,
			escape(string(label)))
	}
}

func (f *Flame) text(b *strings.Builder) {
	sum := f.Measure.Of(f.Root.Weight)
	if sum == 0 {
		return
	}
	fmt.Fprintf(b, "%s: %s\n", report.Printable(f.Title), f.Unit.Format(float64(sum)))
	lines := 0
	f.lines(b, f.Root, 1, float64(sum), &lines)
}

// lines writes the functions that have most of the sum, indented. Those that call one other function only stand
// in its line.
func (f *Flame) lines(b *strings.Builder, n *flame.Node, depth int, sum float64, lines *int) {
	for _, c := range n.Children {
		v := float64(f.Measure.Of(c.Weight))
		if v/sum < flameShare || *lines >= flameLines {
			continue
		}
		*lines++
		names := []string{c.Name}
		for len(c.Children) == 1 && c.Children[0].Calls == c.Calls {
			c = c.Children[0]
			names = append(names, c.Name)
		}
		fmt.Fprintf(b, "%*s%s  %s\n", 2*depth, "", Percent.Format(100*v/sum),
			report.Printable(strings.Join(names, " > ")))
		f.lines(b, c, depth+1, sum, lines)
	}
}
