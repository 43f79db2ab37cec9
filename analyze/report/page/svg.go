// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// SVG writes a Chart or Bars as a picture of its own, with its title and what its colours
// mean: for documents that are no pages.
func SVG(w io.Writer, block Block) error {
	var title string
	var series []Series
	switch c := block.(type) {
	case *Chart:
		title, series = c.Title, c.Series
	case *Bars:
		title, series = c.Title, c.Series
	default:
		return errors.New("only charts and bars are pictures")
	}
	var b strings.Builder
	block.html(&b)
	_, drawing, _ := strings.Cut(b.String(), "<svg ")
	_, drawing, _ = strings.Cut(drawing, ">\n")
	drawing, _, ok := strings.Cut(drawing, "</svg>")
	if !ok {
		return errors.New("there is nothing to draw")
	}
	const head, line = 24.0, 18.0
	x, y := left, high+head+line-4
	var names strings.Builder
	for k, s := range series {
		width := 24 + labelLetter*float64(len([]rune(s.Name)))
		if x > left && x+width > wide {
			x, y = left, y+line
		}
		fmt.Fprintf(&names, "<rect class=\"f%d\" x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"5\"/><text x=\"%.1f\" "+
			"y=\"%.1f\">%s</text>\n", k%6, x, y-6, x+18, y, escape(s.Name))
		x += width + 12
	}
	_, err := fmt.Fprintf(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" role=\"img\" "+
		"aria-label=\"%s\">\n<style>\n%s</style>\n"+
		"<rect width=\"100%%\" height=\"100%%\" style=\"fill:var(--bg)\"/>\n"+
		"<text x=\"%g\" y=\"16\" style=\"fill:var(--fg);font-weight:600\">%s</text>\n"+
		"<g transform=\"translate(0 %g)\">\n%s</g>\n%s</svg>\n",
		wide, y+10, escape(title), style, left, escape(title), head, drawing, names.String())
	return err
}
