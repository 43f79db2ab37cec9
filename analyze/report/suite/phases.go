// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"math"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
)

// phases are parts of the time with a similar mix of work. Each step of the time has a
// mix: the time in calls by sort of work, of which the rest is computing and waiting.
// Neighbours whose joining costs least are joined (bottom-up segmentation: Keogh et al.,
// ICDM 2001) until any more would cost too much.
type phases struct {
	mix   [report.Works]*bins // ns in calls by sort
	read  *bins
	wrote *bins
	calls *bins
}

func newPhases(c *collector) view {
	v := &phases{read: newBins(c), wrote: newBins(c), calls: newBins(c)}
	for k := range v.mix {
		v.mix[k] = newBins(c)
	}
	return v
}

func (v *phases) see(s *seen) {
	if s.Kind != event.Call {
		return
	}
	v.calls.add(s.Exit, 1)
	if s.kind == report.OtherWork {
		return
	}
	v.mix[s.kind].spread(s.Enter, s.Enter+s.took, float64(s.took))
	v.read.spread(s.Enter, s.Exit, float64(s.io.Read))
	v.wrote.spread(s.Enter, s.Exit, float64(s.io.Written))
}

const (
	maxPhases = 12
	// joinCost is how much the mix of a step may differ from that of its phase, as the
	// mean square of shares, before a phase of its own is better.
	joinCost = .02
)

type phase struct {
	FromNS  int64              `json:"from_ns"`
	ToNS    int64              `json:"to_ns"`
	Calls   float64            `json:"calls"`
	Read    float64            `json:"read_bytes"`
	Written float64            `json:"written_bytes"`
	Shares  map[string]float64 `json:"shares"` // of the time, by sort of work; more than 1 with several threads
	Mostly  string             `json:"mostly"`

	from, to int // steps
	mean     [report.Works]float64
}

func (v *phases) section(c *collector) page.Section {
	list := v.join(v.steps())
	step := v.calls.step
	for i := range list {
		p := &list[i]
		p.FromNS, p.ToNS, p.Shares = int64(p.from)*step, min(int64(p.to)*step, c.last-c.first), map[string]float64{}
		for j := p.from; j < p.to; j++ {
			p.Calls += v.calls.values[j]
			p.Read += v.read.values[j]
			p.Written += v.wrote.values[j]
		}
		p.Mostly = "computing and waiting"
		most := .25
		for k := range p.mean {
			if report.Work(k) == report.OtherWork {
				continue
			}
			share := p.mean[k]
			p.Shares[report.Work(k).String()] = share
			if share > most {
				most, p.Mostly = share, report.Work(k).String()
			}
		}
	}
	s := page.Section{ID: "phases", Title: "Phases", Data: list,
		Note: "Parts of the time with a similar mix of work. A share is the time in calls of a sort, of all threads, " +
			"by the time that went by."}
	chart := &page.Chart{Title: "Time in calls by sort of work, per time", X: page.NS, Step: float64(step)}
	for k := range v.mix {
		if report.Work(k) == report.OtherWork {
			continue
		}
		series := page.Series{Name: report.Work(k).String()}
		for _, n := range v.mix[k].values {
			series.Values = append(series.Values, n/float64(step))
		}
		chart.Series = append(chart.Series, series)
	}
	s.Blocks = []page.Block{chart,
		tableOf("", []string{"from", "for", "calls", "read", "written", "reading", "writing", "metadata", "sync", "network", "mostly"}, 0, list, 0, func(p *phase) []string {
			cell := func(k report.Work) string { return Percent(p.mean[k], 1) }
			return []string{span(p.FromNS), span(p.ToNS - p.FromNS), Count(uint64(math.Round(p.Calls))),
				Size(uint64(p.Read)), Size(uint64(p.Written)), cell(report.Reading), cell(report.Writing), cell(report.Metadata), cell(report.Syncing), cell(report.Network), p.Mostly}
		})}
	return s
}

// steps returns a phase for each step of the time.
func (v *phases) steps() []phase {
	list := make([]phase, len(v.calls.values))
	for i := range list {
		p := &list[i]
		p.from, p.to = i, i+1
		for k := range v.mix {
			p.mean[k] = v.mix[k].values[i] / float64(v.calls.step)
		}
	}
	return list
}

// join joins the neighbours that differ least.
func (v *phases) join(list []phase) []phase {
	for len(list) > 1 {
		best, least := 0, math.Inf(1)
		for i := range len(list) - 1 {
			if d := difference(&list[i], &list[i+1]); d < least {
				best, least = i, d
			}
		}
		if len(list) <= maxPhases && least > joinCost {
			break
		}
		a, b := &list[best], &list[best+1]
		n, m := float64(a.to-a.from), float64(b.to-b.from)
		for k := range a.mean {
			a.mean[k] = (a.mean[k]*n + b.mean[k]*m) / (n + m)
		}
		a.to = b.to
		list = append(list[:best+1], list[best+2:]...)
	}
	return list
}

// difference is what joining two phases adds to the squared distance of steps from their
// phase (Ward), by the steps of the smaller one. Shares above 1 count as 1.
func difference(a, b *phase) float64 {
	sum := 0.0
	for k := range a.mean {
		if report.Work(k) == report.OtherWork {
			continue
		}
		d := min(a.mean[k], 1) - min(b.mean[k], 1)
		sum += d * d
	}
	n, m := float64(a.to-a.from), float64(b.to-b.from)
	return sum * n * m / (n + m) / min(n, m)
}
