// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"math"
	"slices"

	"github.com/iotape/iotape/analyze/report/page"
)

// imbalance is how unevenly the processes share the work.
type imbalance struct{}

type imbalanceRow struct {
	What      string  `json:"what"`
	Processes int     `json:"processes"`
	Total     float64 `json:"total"`
	Mean      float64 `json:"mean"`
	Least     float64 `json:"least"`
	LeastOf   string  `json:"least_of"`
	Most      float64 `json:"most"`
	MostOf    string  `json:"most_of"`
	Deviation float64 `json:"deviation"`
	Gini      float64 `json:"gini"` // 0: all the same; near 1: one does it all
}

func newImbalance(*collector) view { return imbalance{} }

func (imbalance) see(*seen) {}

func (imbalance) section(c *collector) page.Section {
	row := func(what string, value func(*process) float64) imbalanceRow {
		r := imbalanceRow{What: what, Least: math.Inf(1)}
		var list []float64
		for _, p := range c.procs.list {
			if p.calls == 0 {
				continue
			}
			v := value(p)
			list = append(list, v)
			r.Total += v
			if v < r.Least {
				r.Least, r.LeastOf = v, p.name()
			}
			if v > r.Most || r.MostOf == "" {
				r.Most, r.MostOf = v, p.name()
			}
		}
		if r.Processes = len(list); r.Processes == 0 {
			r.Least = 0
			return r
		}
		d := spreadOf(list)
		r.Mean, r.Deviation, r.Gini = d.Mean, d.Deviation, gini(list)
		return r
	}
	rows := []imbalanceRow{
		row("bytes", func(p *process) float64 { return float64(p.read + p.written) }),
		row("time in input and output", func(p *process) float64 { return float64(p.io()) }),
		row("calls", func(p *process) float64 { return float64(p.calls) }),
		row("run time", func(p *process) float64 { return float64(p.last - p.first) }),
	}
	units := []page.Unit{page.Bytes, page.NS, page.Plain, page.NS}
	t := &page.Table{Head: []string{"", "processes", "mean", "least", "", "most", "", "standard deviation", "Gini"},
		Left: 1}
	for i, r := range rows {
		f := units[i].Format
		t.Add(r.What, Count(uint64(r.Processes)), f(r.Mean), f(r.Least), r.LeastOf, f(r.Most), r.MostOf, f(r.Deviation),
			page.Plain.Format(math.Round(1000*r.Gini)/1000))
	}
	return page.Section{ID: "imbalance", Title: "Balance between processes", Data: rows, Blocks: []page.Block{t},
		Note: "Of the processes that made calls. The Gini coefficient is 0 if all do the same, and near 1 if one " +
			"does it all; the process with the most time is the straggler."}
}

// gini is half the mean difference of two values, by the mean.
func gini(list []float64) float64 {
	slices.Sort(list)
	sum, weighted := 0.0, 0.0
	for i, v := range list {
		sum += v
		weighted += float64(i+1) * v
	}
	n := float64(len(list))
	if sum == 0 {
		return 0
	}
	return max(2*weighted/(n*sum)-(n+1)/n, 0)
}
