// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"math"
	"slices"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
)

// cost is what part of its run time each process spends in reads, writes, metadata and
// syncs: Darshan's I/O cost. A process's run time is the sum of its threads' lifetimes.
type cost struct{}

type costRow struct {
	Process  string  `json:"process"`
	RunNS    int64   `json:"run_ns"`
	Read     float64 `json:"read"`
	Write    float64 `json:"write"`
	Metadata float64 `json:"metadata"`
	Sync     float64 `json:"sync"`
	Network  float64 `json:"network"`
	IO       float64 `json:"io"` // the first four
	ioNS     int64
}

type costSpread struct {
	Mean      float64 `json:"mean"`
	Least     float64 `json:"least"`
	Most      float64 `json:"most"`
	Deviation float64 `json:"deviation"`
}

func newCost(*collector) view { return cost{} }

func (cost) see(*seen) {}

func (cost) section(c *collector) page.Section {
	list := []costRow{}
	for _, p := range c.procs.list {
		if p.threadNS <= 0 {
			continue
		}
		of := func(k report.Work) float64 { return share(float64(p.took[k]), float64(p.threadNS)) }
		list = append(list, costRow{p.name(), p.threadNS, of(report.Reading), of(report.Writing), of(report.Metadata),
			of(report.Syncing), of(report.Network), share(float64(p.io()), float64(p.threadNS)), p.io()})
	}
	slices.SortStableFunc(list, func(a, b costRow) int { return cmp.Compare(b.ioNS, a.ioNS) })
	spread := map[string]costSpread{}
	table := &page.Table{Title: "Over all processes",
		Head: []string{"share of run time", "mean", "least", "most", "standard deviation"}, Left: 1}
	for _, k := range []struct {
		name  string
		value func(*costRow) float64
	}{{"read", func(r *costRow) float64 { return r.Read }}, {"write", func(r *costRow) float64 { return r.Write }},
		{"metadata", func(r *costRow) float64 { return r.Metadata }},
		{"sync", func(r *costRow) float64 { return r.Sync }}, {"all of these", func(r *costRow) float64 { return r.IO }}} {
		var values []float64
		for i := range list {
			values = append(values, k.value(&list[i]))
		}
		d := spreadOf(values)
		spread[k.name] = d
		table.Add(k.name, Percent(d.Mean, 1), Percent(d.Least, 1), Percent(d.Most, 1), Percent(d.Deviation, 1))
	}
	s := page.Section{ID: "cost", Title: "Cost of input and output",
		Data: map[string]any{"processes": list, "spread": spread},
		Note: "The share of its run time that a process spends in calls of each sort. The run time is that of all " +
			"its threads together, from a thread's first event to its end. Waiting, memory and process calls are not " +
			"input or output."}
	bars := &page.Bars{Title: "Share of run time, %"}
	for i, name := range []string{"read", "write", "metadata", "sync"} {
		series := page.Series{Name: name}
		for _, r := range list[:min(len(list), c.o.Top)] {
			series.Values = append(series.Values, math.Round(1000*[]float64{r.Read, r.Write, r.Metadata, r.Sync}[i])/10)
		}
		bars.Series = append(bars.Series, series)
	}
	for _, r := range list[:min(len(list), c.o.Top)] {
		bars.Labels = append(bars.Labels, r.Process)
	}
	rows := tableOf("By process", []string{"process", "run time", "read", "write", "metadata", "sync",
		"input and output", "network"}, 1, list, c.o.Top, func(r *costRow) []string {
		return []string{r.Process, span(r.RunNS), Percent(r.Read, 1), Percent(r.Write, 1), Percent(r.Metadata, 1),
			Percent(r.Sync, 1), Percent(r.IO, 1), Percent(r.Network, 1)}
	})
	s.Blocks = []page.Block{table, rows, bars}
	return s
}

func spreadOf(values []float64) (d costSpread) {
	if len(values) == 0 {
		return d
	}
	d.Least = math.Inf(1)
	for _, v := range values {
		d.Mean += v / float64(len(values))
		d.Least, d.Most = min(d.Least, v), max(d.Most, v)
	}
	for _, v := range values {
		d.Deviation += (v - d.Mean) * (v - d.Mean) / float64(len(values))
	}
	d.Deviation = math.Sqrt(d.Deviation)
	return d
}

// overlap is how much of the time in input and output is not hidden behind computing:
// DFTracer's unoverlapped I/O. A thread computes from the return of a call to the entry
// of its next.
type overlap struct {
	io, compute intervals             // of the job
	procs       map[int]*[2]intervals // by process: I/O, compute
	returned    map[uint64]int64      // by host and thread
}

// maxOverlapping is how many processes have sets of their own.
const maxOverlapping = 256

type overlapRow struct {
	Name         string `json:"name"`
	RunNS        int64  `json:"run_ns"`
	IONS         int64  `json:"io_ns"`      // at least one thread is in I/O
	ComputeNS    int64  `json:"compute_ns"` // at least one thread is in no call
	BothNS       int64  `json:"both_ns"`
	Unoverlapped int64  `json:"unoverlapped_io_ns"`
	InexactNS    int64  `json:"inexact_ns,omitempty"` // gaps that were closed to bound memory
}

func newOverlap(*collector) view {
	v := &overlap{procs: map[int]*[2]intervals{}, returned: map[uint64]int64{}}
	v.io.max, v.compute.max = 1<<18, 1<<18
	return v
}

func (v *overlap) see(s *seen) {
	key := uint64(s.Host)<<32 | uint64(s.TID)
	switch s.Kind {
	case event.Call:
	case event.Exited:
		v.interval(s, 1, v.returned[key], s.Exit)
		delete(v.returned, key)
		return
	default:
		return
	}
	if s.spec.NoCall || s.Op.IsUring() || s.Op.IsAIO() {
		if s.kind.IsIO() {
			v.interval(s, 0, s.Enter, s.Enter+s.took)
		}
		return
	}
	if since, ok := v.returned[key]; ok {
		v.interval(s, 1, since, s.Enter)
	}
	if len(v.returned) < 1<<20 {
		v.returned[key] = s.Exit
	}
	if s.kind.IsIO() {
		v.interval(s, 0, s.Enter, s.Enter+s.took)
	}
}

// interval adds to the set 0 of I/O or 1 of computing.
func (v *overlap) interval(s *seen, which int, from, to int64) {
	if from == 0 {
		return
	}
	if which == 0 {
		v.io.add(from, to)
	} else {
		v.compute.add(from, to)
	}
	p := v.procs[s.proc.id]
	if p == nil {
		if len(v.procs) >= maxOverlapping {
			return
		}
		p = new([2]intervals)
		p[0].max, p[1].max = 1<<13, 1<<13
		v.procs[s.proc.id] = p
	}
	p[which].add(from, to)
}

func (v *overlap) section(c *collector) page.Section {
	row := func(name string, run int64, io, compute *intervals) overlapRow {
		r := overlapRow{Name: name, RunNS: run, IONS: io.total(), ComputeNS: compute.total(),
			BothNS: io.common(compute)}
		r.Unoverlapped, r.InexactNS = r.IONS-r.BothNS, io.lost+compute.lost
		return r
	}
	list := []overlapRow{row("all", c.last-c.first, &v.io, &v.compute)}
	for _, p := range c.procs.list {
		if sets := v.procs[p.id]; sets != nil {
			list = append(list, row(p.name(), p.last-p.first, &sets[0], &sets[1]))
		}
	}
	slices.SortStableFunc(list[1:], func(a, b overlapRow) int { return cmp.Compare(b.Unoverlapped, a.Unoverlapped) })
	s := page.Section{ID: "overlap", Title: "Overlap of input, output and computing", Data: list,
		Note: "I/O is the time in which at least one thread is in a call that reads, writes, syncs or does metadata; " +
			"computing the time in which at least one is in no call at all. Unoverlapped I/O is what nobody computes " +
			"beside: the time that faster storage can save."}
	s.Blocks = []page.Block{tableOf("", []string{"", "run time", "I/O", "computing", "both", "unoverlapped I/O",
		"of the run time"}, 1, list, c.o.Top+1, func(r *overlapRow) []string {
		return []string{r.Name, span(r.RunNS), span(r.IONS), span(r.ComputeNS), span(r.BothNS), span(r.Unoverlapped),
			Percent(float64(r.Unoverlapped), float64(r.RunNS))}
	})}
	if n := list[0].InexactNS; n > 0 {
		s.Blocks = append(s.Blocks,
			page.Line("gaps of "+span(n)+
				" in all were closed to bound memory: the times of all are too large by at most that"))
	}
	return s
}
