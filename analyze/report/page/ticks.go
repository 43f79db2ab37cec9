// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"strings"

	"github.com/iotape/iotape/analyze/report"
)

// labelLetter is about how wide a letter of a label is, in the units of drawings.
const labelLetter = 6.5

// tickStep returns a round distance between ticks, so that a range has at most most of them.
// Steps of bytes are powers of two, counts are whole, and times are whole ns.
func (u Unit) tickStep(length float64, most int) float64 {
	least := length / float64(most)
	if u == Bytes || u == BytesRate {
		return math.Exp2(max(0, math.Ceil(math.Log2(least)-1e-9)))
	}
	power := math.Pow(10, math.Floor(math.Log10(least)))
	if whole := u != Percent && u != CountsRate; whole && power < 1 {
		return 1
	}
	for _, k := range []float64{1, 2, 5} {
		if k*power >= least*(1-1e-9) {
			return k * power
		}
	}
	return 10 * power
}

// ticks returns the multiples of a round step from one value to another.
func (u Unit) ticks(from, to float64, most int) (list []float64) {
	if !(to > from) {
		return []float64{from}
	}
	step := u.tickStep(to-from, most)
	for k := math.Ceil(from/step - 1e-9); k*step <= to*(1+1e-9); k++ {
		list = append(list, k*step+0) // not -0
	}
	return list
}

// tick writes a value at a tick, without the zeros behind its last digit.
func (u Unit) tick(v float64) string {
	switch {
	case u == Plain && v >= 1000:
		return report.Count(uint64(math.Round(v)))
	case v == 0 && u == NS:
		return "0 s"
	}
	number, unit, _ := strings.Cut(u.Format(v), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return strings.TrimSuffix(number+" "+unit, " ")
}

// timeAxis draws ticks over a horizontal range: values from one to another between two places.
func timeAxis(b *strings.Builder, u Unit, from, to, x1, x2, y float64) {
	for _, v := range u.ticks(from, to, 8) {
		x := x1 + (x2-x1)*(v-from)/(to-from)
		text := u.tick(v)
		half := labelLetter * float64(len([]rune(text))) / 2
		align := "middle"
		switch {
		case x+half > wide:
			align = "end"
		case x-half < x1-left:
			align = "start"
		}
		fmt.Fprintf(b, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"+
			"<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n",
			x, x, y-16, y-12, x, y, align, escape(text))
	}
}

// labelStep returns of how many labels one is written, so that none overlaps the next.
func labelStep(labels []string, slot float64) int {
	widest := 0
	for _, l := range labels {
		widest = max(widest, len([]rune(l)))
	}
	return max(1, int(math.Ceil((labelLetter*float64(widest)+6)/slot)))
}
