// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report/page"
)

// kind is what an application waits by, or programs.
func kind(app string) string {
	if _, sync, ok := strings.Cut(app, "/"); ok {
		return sync
	}
	return "programs"
}

// kinds are those of the applications, in their order.
func (r *Report) kinds() (names []string) {
	for _, app := range r.apps() {
		if k := kind(app); !slices.Contains(names, k) {
			names = append(names, k)
		}
	}
	return names
}

// highest is where bars end, per cent: replays that know least of an application are off
// by so much that nothing else could be seen beside them.
const highest = 100

// errorBars draws Figure 8: a picture for each kind of application, with no more bars
// beside each other than there are colours.
func (r *Report) errorBars(modes []string) (pictures []page.Block) {
	const colours = 6
	modes = modes[:min(len(modes), colours)]
	for _, k := range r.kinds() {
		bars := &page.Bars{Title: "Mean error by application, " + k, Unit: page.Percent}
		for _, app := range r.apps() {
			if kind(app) == k &&
				slices.ContainsFunc(modes, func(m string) bool { _, _, n := r.mean(app, m); return n > 0 }) {
				bars.Labels = append(bars.Labels, app)
			}
		}
		cut := false
		for _, m := range modes {
			s, some := page.Series{Name: m}, false
			for _, app := range bars.Labels {
				a, _, n := r.mean(app, m)
				some, cut = some || n > 0, cut || 100*a > highest
				s.Values = append(s.Values, min(100*a, highest))
			}
			if some {
				bars.Series = append(bars.Series, s)
			}
		}
		if cut {
			bars.Title += fmt.Sprintf("; bars end at %d %%", highest)
		}
		if len(bars.Series) > 0 {
			pictures = append(pictures, bars)
		}
	}
	return pictures
}

// curves are the values of applications by kind, per cent, for pictures that have no room
// for each application.
type curves map[string][][]float64

func (c curves) add(app string, values []float64) {
	if len(values) > 0 {
		c[kind(app)] = append(c[kind(app)], values)
	}
}

// bars draws the means of each kind, one for each label: of the applications that have all.
func (c curves) bars(title string, labels []string) []page.Block {
	bars := &page.Bars{Title: title, Unit: page.Percent, Labels: labels}
	cut := false
	for _, k := range append(slices.Clone(Syncs), "programs") {
		list := slices.DeleteFunc(slices.Clone(c[k]), func(v []float64) bool { return len(v) != len(labels) })
		if len(list) == 0 {
			continue
		}
		s := page.Series{Name: fmt.Sprintf("%s (%d)", k, len(list)), Values: make([]float64, len(labels))}
		for i := range labels {
			sum := 0.0
			for _, v := range list {
				sum += v[i]
			}
			mean := sum / float64(len(list))
			cut = cut || mean > highest
			s.Values[i] = min(mean, highest)
		}
		bars.Series = append(bars.Series, s)
	}
	if cut {
		bars.Title += fmt.Sprintf("; bars end at %d %%", highest)
	}
	if len(labels) == 0 || len(bars.Series) == 0 {
		return nil
	}
	return []page.Block{bars}
}

// point is what one way to find dependencies costs, and how well replays with them do.
type point struct {
	mode         string
	times, error float64
}

// points lists those of an application, the cheapest first.
func (r *Report) points(app string) (points []point) {
	for _, n := range r.allNotes(app) {
		if a, _, count := r.mean(app, n.Mode); count > 0 {
			points = append(points, point{n.Mode, n.Times, a})
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.times, b.times), strings.Compare(a.mode, b.mode))
	})
	return points
}

// prices are the steps of the picture of Figure 11, as multiples of the application's run.
var prices = []float64{1, 2, 5, 10, 20, 50, math.Inf(1)}

// cost is Figure 11.
func (r *Report) cost() Figure {
	f := Figure{Name: "figure-11", Title: "What accuracy costs: tracing time against error",
		Note: "The least error of each application for each price: a line stands only if everything that is cheaper " +
			"is worse. Wake-ups take one run."}
	t := &page.Table{Head: []string{"application", "found by", "multiple", "mean error"}, Left: 2}
	byKind := curves{}
	var labels []string
	for _, price := range prices {
		label := fmt.Sprintf("up to %g", price)
		if math.IsInf(price, 1) {
			label = "any"
		}
		labels = append(labels, label)
	}
	for _, app := range r.apps() {
		points := r.points(app)
		least := math.Inf(1)
		for _, p := range points {
			if p.error < least {
				least = p.error
				t.Add(app, p.mode, fmt.Sprintf("%.1f", p.times), percent(p.error, 1))
			}
		}
		if len(points) < 2 {
			continue // there is no choice
		}
		var values []float64
		for _, price := range prices {
			least := math.Inf(1)
			for _, p := range points {
				if p.times <= price {
					least = min(least, 100*p.error)
				}
			}
			if !math.IsInf(least, 1) {
				values = append(values, least)
			}
		}
		byKind.add(app, values)
	}
	f.Table = t
	f.Pictures = byKind.bars("Least mean error by tracing time, in runs of the application", labels)
	return f
}
