// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/iotape/iotape/analyze/report"
)

// Unit says how a number is written.
type Unit uint8

// The units.
const (
	Plain      Unit = iota // a count
	NS                     // nanoseconds
	Bytes                  // bytes
	BytesRate              // bytes per second
	CountsRate             // per second
	Percent                // of a hundred
)

// Format writes a number with its unit.
func (u Unit) Format(v float64) string {
	switch u {
	case NS:
		return report.Duration(int64(math.Round(v)))
	case Bytes:
		return report.Bytes(uint64(max(v, 0)))
	case BytesRate:
		return report.Bytes(uint64(max(v, 0))) + "/s"
	case CountsRate:
		return short(v) + "/s"
	case Percent:
		return strconv.FormatFloat(v, 'f', 1, 64) + " %"
	}
	return short(v)
}

// short writes a count with three digits where it has many.
func short(v float64) string {
	for _, s := range []struct {
		from float64
		unit string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if v >= s.from {
			n := s.from
			if s.unit == "k" {
				n = 1e3
			}
			return strconv.FormatFloat(v/n, 'g', 3, 64) + " " + s.unit
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Chart shows values over equal steps: series of lines.
type Chart struct {
	Title  string
	X, Y   Unit
	From   float64 // of the first value
	Step   float64 // between values
	Series []Series
}

// Series is one line of a chart.
type Series struct {
	Name   string
	Values []float64
}

// Places of a drawing, in its own units.
const (
	wide, high  = 900.0, 220.0
	left, below = 74.0, 22.0
	above       = 8.0
)

// largest returns the largest value, and the most values of a series.
func (c *Chart) largest() (top float64, n int) {
	for _, s := range c.Series {
		n = max(n, len(s.Values))
		for _, v := range s.Values {
			top = max(top, v)
		}
	}
	return top, n
}

func (c *Chart) html(b *strings.Builder) {
	top, n := c.largest()
	if n == 0 || top <= 0 {
		return
	}
	figure(b, c.Title, func() {
		key(b, c.Series)
		fmt.Fprintf(b, "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", wide, high, escape(c.Title))
		top = axes(b, top, c.Y)
		x := func(i float64) float64 { return left + (wide-left-8)*i/float64(max(n, 1)) }
		y := func(v float64) float64 { return high - below - (high-below-above)*v/top }
		timeAxis(b, c.X, c.From, c.From+float64(n)*c.Step, x(0), x(float64(n)), high-6)
		for k, s := range c.Series {
			fmt.Fprintf(b, "<path class=\"line s%d d%d\" d=\"", k%6, k%6)
			for i, v := range s.Values {
				fmt.Fprintf(b, "%c%.1f %.1f", "ML"[min(i, 1)], x(float64(i)+.5), y(v))
			}
			fmt.Fprintf(b, "\"><title>%s</title></path>\n", escape(s.Name))
		}
		b.WriteString("</svg>\n")
	})
}

// axes draws the scale of the values, and returns its end: a round number from top on.
func axes(b *strings.Builder, top float64, u Unit) float64 {
	step := u.tickStep(top, 4)
	end := math.Ceil(top/step-1e-9) * step
	for _, v := range u.ticks(0, end, int(math.Round(end/step))) {
		y := high - below - (high-below-above)*v/end
		fmt.Fprintf(b, "<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>"+
			"<text class=\"tick\" x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			left, wide-8, y, y, left-6, y+4, escape(u.tick(v)))
	}
	return end
}

// key says which colour is what, if there is more than one.
func key(b *strings.Builder, series []Series) {
	if len(series) < 2 {
		return
	}
	b.WriteString("<div class=\"key\">")
	for k, s := range series {
		fmt.Fprintf(b, "<span><i class=\"f%d\"></i>%s</span>", k%6, escape(s.Name))
	}
	b.WriteString("</div>\n")
}

func figure(b *strings.Builder, title string, draw func()) {
	b.WriteString("<figure>\n")
	if title != "" {
		b.WriteString("<figcaption>" + escape(title) + "</figcaption>\n")
	}
	b.WriteString("<div class=\"plot\">\n")
	draw()
	b.WriteString("</div></figure>\n")
}

// levels are what a terminal draws a line with.
var levels = []rune("▁▂▃▄▅▆▇█")

func (c *Chart) text(b *strings.Builder) {
	top, n := c.largest()
	if n == 0 || top <= 0 {
		return
	}
	fmt.Fprintf(b, "%s: at most %s, over %s\n", report.Printable(c.Title), c.Y.Format(top),
		c.X.Format(float64(n)*c.Step))
	width := 0
	for _, s := range c.Series {
		width = max(width, len([]rune(report.Printable(s.Name))))
	}
	for _, s := range c.Series {
		fmt.Fprintf(b, "  %-*s  %s\n", width, report.Printable(s.Name), spark(s.Values, n, top))
	}
}

// spark draws values in one line of at most 80 characters: the largest of each part.
func spark(values []float64, n int, top float64) string {
	const most = 80
	cells := min(n, most)
	line := make([]rune, cells)
	for i := range line {
		v := 0.0
		for j := i * n / cells; j < (i+1)*n/cells && j < len(values); j++ {
			v = max(v, values[j])
		}
		line[i] = ' '
		if v > 0 {
			line[i] = levels[min(int(v/top*float64(len(levels))), len(levels)-1)]
		}
	}
	return strings.TrimRight(string(line), " ")
}

// Bars are counts by label, for one or more series beside each other: a histogram.
type Bars struct {
	Title  string
	Unit   Unit
	Labels []string
	Series []Series
}

func (c *Bars) html(b *strings.Builder) {
	chart := Chart{Series: c.Series}
	top, _ := chart.largest()
	if top <= 0 {
		return
	}
	figure(b, c.Title, func() {
		key(b, c.Series)
		fmt.Fprintf(b, "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", wide, high, escape(c.Title))
		top = axes(b, top, c.Unit)
		slot := (wide - left - 8) / float64(len(c.Labels))
		each := slot * .8 / float64(len(c.Series))
		every := labelStep(c.Labels, slot)
		for i, label := range c.Labels {
			x := left + slot*float64(i)
			if i%every == 0 {
				fmt.Fprintf(b, "<text class=\"tick\" x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
					x+slot/2, high-6, escape(label))
			}
			for k, s := range c.Series {
				if i >= len(s.Values) || s.Values[i] <= 0 {
					continue
				}
				h := max((high-below-above)*s.Values[i]/top, 1)
				fmt.Fprintf(b,
					"<rect class=\"f%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%s %s: "+
						"%s</title></rect>\n",
					k%6, x+slot*.1+each*float64(k), high-below-h, max(each, .5), h, escape(s.Name), escape(label),
					escape(c.Unit.Format(s.Values[i])))
			}
		}
		b.WriteString("</svg>\n")
	})
}

func (c *Bars) text(b *strings.Builder) {
	if len(c.Series) == 0 {
		return
	}
	t := Table{Title: c.Title, Head: []string{""}, Left: 1}
	for _, s := range c.Series {
		t.Head = append(t.Head, s.Name)
	}
	for i, label := range c.Labels {
		row := []string{label}
		some := false
		for _, s := range c.Series {
			v := 0.0
			if i < len(s.Values) {
				v = s.Values[i]
			}
			some = some || v > 0
			row = append(row, c.Unit.Format(v))
		}
		if some {
			t.Add(row...)
		}
	}
	t.text(b)
}

// Heat shows values as shades: rows over equal steps.
type Heat struct {
	Title      string
	X, Unit    Unit
	From, Step float64
	Rows       []Series
}

func (h *Heat) html(b *strings.Builder) {
	chart := Chart{Series: h.Rows}
	top, n := chart.largest()
	if n == 0 || top <= 0 {
		return
	}
	const row, names = 16.0, 190.0
	total := row*float64(len(h.Rows)) + 24
	figure(b, h.Title, func() {
		fmt.Fprintf(b, "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", wide, total, escape(h.Title))
		cell := (wide - names - 8) / float64(n)
		for k, r := range h.Rows {
			y := row * float64(k)
			fmt.Fprintf(b, "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", names-6,
				y+12, escape(ending(r.Name, 30)))
			for i, v := range r.Values {
				if v <= 0 {
					continue
				}
				// The square root tells small values apart, which most are.
				fmt.Fprintf(b,
					"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%g\" class=\"h\" "+
						"fill-opacity=\"%.2f\"><title>%s, %s: %s</title></rect>\n",
					names+cell*float64(i), y, cell+.2, row-1, .08+.92*math.Sqrt(v/top), escape(r.Name),
					escape(h.X.Format(h.From+float64(i)*h.Step)), escape(h.Unit.Format(v)))
			}
		}
		timeAxis(b, h.X, h.From, h.From+float64(n)*h.Step, names, wide-8, total-6)
		b.WriteString("</svg>\n")
		fmt.Fprintf(b, "<div class=\"key\"><span>strongest: %s</span></div>\n", escape(h.Unit.Format(top)))
	})
}

// ending returns the end of a name, which tells more of a path than its beginning.
func ending(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return "…" + string(r[len(r)-n+1:])
}

func (h *Heat) text(b *strings.Builder) {
	chart := Chart{Series: h.Rows}
	top, n := chart.largest()
	if n == 0 || top <= 0 {
		return
	}
	fmt.Fprintf(b, "%s: at most %s\n", report.Printable(h.Title), h.Unit.Format(top))
	const names = 30
	for _, r := range h.Rows {
		fmt.Fprintf(b, "  %*s  %s\n", names, report.Printable(ending(r.Name, names)), spark(r.Values, n, top))
	}
}
