// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
)

// Page lays the comparison out. With one target it is the report of a replay.
func (c *Comparison) Page() *page.Page {
	p := &page.Page{Title: c.Title, Lines: c.Lines}
	p.Sections = append(p.Sections, c.summary(), c.operations())
	if s, ok := c.throughput(); ok {
		p.Sections = append(p.Sections, s)
	}
	if s, ok := c.differences(); ok {
		p.Sections = append(p.Sections, s)
	}
	return p
}

// Most rows of the tables that can be long; the JSON has all that were kept.
const (
	maxDifferences = 200
	maxOps         = 60
)

func (c *Comparison) summary() page.Section {
	s := page.Section{ID: "targets", Title: "Time and space", Data: c.summaryData()}
	s.Note = "Elapsed is from the first call to the return of the last; user and system are the CPU time of the " +
		"replaying process, which does not compute what the recorded program did. Space is what the files have " +
		"allocated in the end."
	if len(c.Targets) > 0 && len(c.Targets[0].Runs) > 1 {
		s.Note += " Of several runs: the median, and in parentheses the least and the largest."
	}
	t := &page.Table{Head: []string{"", "recorded"}, Left: 1}
	for i := range c.Targets {
		t.Head = append(t.Head, c.Targets[i].Name)
	}
	row := func(name, recorded string, needed bool, cell func(*Target) (string, bool)) {
		cells, any := []string{name, recorded}, needed
		for i := range c.Targets {
			text, ok := cell(&c.Targets[i])
			any = any || ok
			cells = append(cells, text)
		}
		if any {
			t.Add(cells...)
		}
	}
	span := func(value func(*Run) int64, format func(int64) string) func(*Target) (string, bool) {
		return func(t *Target) (string, bool) {
			v := t.spread(value)
			return spreadText(v, format), v.Max > 0
		}
	}
	count := func(n int64) string { return report.Count(uint64(n)) }
	size := func(n int64) string { return report.Bytes(uint64(max(n, 0))) }
	row("elapsed", report.Duration(c.Recorded.ElapsedNS), true,
		span(func(r *Run) int64 { return r.ElapsedNS }, report.Duration))
	row("of the recording", "100 %", true, func(t *Target) (string, bool) {
		return share(t.spread(func(r *Run) int64 { return r.ElapsedNS }).Median, c.Recorded.ElapsedNS), true
	})
	row("system time", dash(c.Recorded.SystemNS, report.Duration), false,
		span(func(r *Run) int64 { return r.SystemNS }, report.Duration))
	row("user time", dash(c.Recorded.UserNS, report.Duration), false,
		span(func(r *Run) int64 { return r.UserNS }, report.Duration))
	row("writing it back", "–", false, span(func(r *Run) int64 { return r.SyncNS }, report.Duration))
	row("space used", "–", false, span(func(r *Run) int64 { return r.SpaceBytes }, size))
	row("calls made", "–", true, span(func(r *Run) int64 { return int64(r.Calls) }, count))
	row("modelled", "–", true, span(func(r *Run) int64 { return int64(r.Modelled) }, count))
	row("late on average", "–", false, func(t *Target) (string, bool) {
		v := t.spread(func(r *Run) int64 { return r.LagMeanNS })
		return spreadText(v, report.Duration), t.typical().Paced
	})
	row("late at most", "–", false, func(t *Target) (string, bool) {
		v := t.spread(func(r *Run) int64 { return r.LagMaxNS })
		return spreadText(v, report.Duration), t.typical().Paced
	})
	row("results and files that differ", "–", false, func(t *Target) (string, bool) {
		if !t.typical().Checked {
			return "not compared", false
		}
		return spreadText(t.spread(func(r *Run) int64 { return int64(r.Different) + int64(len(r.Tree)) }), count), true
	})
	s.Blocks = append(s.Blocks, t)
	for i := range c.Targets {
		for _, problem := range c.Targets[i].typical().Problems {
			s.Blocks = append(s.Blocks, page.Line(c.Targets[i].Name+" did not allow: "+problem))
		}
		if n := c.Targets[i].typical().Uncompared; n > 0 {
			s.Blocks = append(s.Blocks,
				page.Line(fmt.Sprintf("%s: the bytes of %s reads were not compared: the tape does not have them",
					c.Targets[i].Name, report.Count(n))))
		}
	}
	return s
}

// summaryData are the numbers of the first section, with all runs.
func (c *Comparison) summaryData() any {
	type target struct {
		Name    string `json:"name"`
		Elapsed Spread `json:"elapsed_ns"`
		User    Spread `json:"user_ns"`
		System  Spread `json:"system_ns"`
		Sync    Spread `json:"sync_ns"`
		Space   Spread `json:"space_bytes"`
		Runs    []Run  `json:"runs"`
	}
	v := struct {
		OK       bool     `json:"ok"`
		Recorded Side     `json:"recorded"`
		Targets  []target `json:"targets"`
	}{OK: c.OK(), Recorded: c.Recorded}
	for i := range c.Targets {
		t := &c.Targets[i]
		v.Targets = append(v.Targets, target{
			t.Name, t.spread(func(r *Run) int64 { return r.ElapsedNS }),
			t.spread(func(r *Run) int64 { return r.UserNS }), t.spread(func(r *Run) int64 { return r.SystemNS }),
			t.spread(func(r *Run) int64 { return r.SyncNS }), t.spread(func(r *Run) int64 { return r.SpaceBytes }),
			t.Runs})
	}
	return v
}

// operations are the calls by operation, each side beside the others.
func (c *Comparison) operations() page.Section {
	s := page.Section{ID: "ops", Title: "Operations",
		Note: "How often each operation was called, what it moved, and how long one call took: of the calls that a " +
			"replay makes. As fast as possible, a replay times one in 16 plain reads and writes."}
	if len(c.Targets) > 0 && len(c.Targets[0].Runs) > 1 {
		s.Note += " Of each target the run is shown whose elapsed time is the median."
	}
	ops := c.Recorded.Ops
	type cell struct {
		name string
		side *Side
	}
	sides := []cell{{"recorded", &c.Recorded}}
	for i := range c.Targets {
		sides = append(sides, cell{c.Targets[i].Name, &c.Targets[i].typical().Side})
	}
	amounts := &page.Table{Title: "Calls, bytes and time", Head: []string{"operation"}, Left: 1, Of: len(ops)}
	latency := &page.Table{Title: "Latency", Head: []string{"operation"}, Left: 1, Of: len(ops)}
	for _, x := range sides {
		amounts.Head = append(amounts.Head, x.name+": calls", "bytes", "time in calls")
		latency.Head = append(latency.Head, x.name+": p50", "p95", "p99", "max")
	}
	type row struct {
		Op    string        `json:"op"`
		Sides map[string]Op `json:"sides"`
	}
	var data []row
	for i := range ops {
		r := row{ops[i].Op, map[string]Op{}}
		first, second := []string{ops[i].Op}, []string{ops[i].Op}
		for _, x := range sides {
			o := x.side.find(ops[i].Op)
			r.Sides[x.name] = o
			first = append(first, dash(int64(o.Count), func(n int64) string { return report.Count(uint64(n)) }),
				dash(int64(o.Bytes), func(n int64) string { return report.Bytes(uint64(n)) }),
				dash(o.TotalNS, report.Duration))
			second = append(second, dash(o.P50NS, report.Duration), dash(o.P95NS, report.Duration),
				dash(o.P99NS, report.Duration), dash(o.MaxNS, report.Duration))
		}
		data = append(data, r)
		if i < maxOps {
			amounts.Add(first...)
			latency.Add(second...)
		}
	}
	s.Blocks, s.Data = []page.Block{amounts, latency}, data
	return s
}

// throughput are the curves of bytes over time, in steps of one length.
func (c *Comparison) throughput() (page.Section, bool) {
	s := page.Section{ID: "throughput", Title: "Throughput over time",
		Note: "Bytes that the calls moved, by the time since the first of them."}
	names, rates := []string{"recorded"}, []*Series{c.Recorded.Rate}
	for i := range c.Targets {
		names, rates = append(names, c.Targets[i].Name), append(rates, c.Targets[i].typical().Rate)
	}
	end, some := int64(0), false
	for _, r := range rates {
		if r != nil && len(r.Bytes) > 0 {
			end, some = max(end, r.BinNS*int64(len(r.Bytes))), true
		}
	}
	if !some {
		return s, false
	}
	const steps = 200
	step := max((end+steps-1)/steps, 1)
	chart := &page.Chart{Title: "Bytes per second", X: page.NS, Y: page.BytesRate, Step: float64(step)}
	data := map[string]any{"step_ns": step}
	for i, r := range rates {
		values := r.Over(step)
		chart.Series = append(chart.Series, page.Series{Name: names[i], Values: values})
		data[names[i]] = values
	}
	s.Blocks, s.Data = []page.Block{chart}, data
	return s, true
}

// Over returns bytes per second in steps of ns: what a part of the series has is spread
// evenly over its time.
func (s *Series) Over(step int64) []float64 {
	if s == nil || s.BinNS <= 0 {
		return nil
	}
	values := make([]float64, (s.BinNS*int64(len(s.Bytes))+step-1)/step)
	for i, n := range s.Bytes {
		for at, end := int64(i)*s.BinNS, int64(i+1)*s.BinNS; at < end; {
			next := min((at/step+1)*step, end)
			values[at/step] += float64(n) * float64(next-at) / float64(s.BinNS) / float64(step) * 1e9
			at = next
		}
	}
	return values
}

// differences are what was not as recorded.
func (c *Comparison) differences() (page.Section, bool) {
	s := page.Section{ID: "differences", Title: "Differences",
		Note: "What was not as in the recording. Calls that follow from a file that could not be opened are counted, " +
			"not listed."}
	data, checked := map[string]any{}, false
	for i := range c.Targets {
		r := c.Targets[i].typical()
		if !r.Checked {
			continue
		}
		checked = true
		name := c.Targets[i].Name
		data[name] = map[string]any{"calls": r.Mismatches, "tree": r.Tree}
		if r.Different == 0 && len(r.Tree) == 0 {
			s.Blocks = append(s.Blocks,
				page.Line(fmt.Sprintf("%s: all results agree, and so do all %s paths", name,
					report.Count(uint64(r.Paths)))))
			continue
		}
		calls := &page.Table{Title: name + ": results of calls",
			Head: []string{"event", "thread", "what", "expected", "got", "path"}, Right: 2, Of: int(r.Different)}
		for _, d := range r.Mismatches[:min(len(r.Mismatches), maxDifferences)] {
			calls.Add(fmt.Sprint(d.Event), fmt.Sprint(d.Thread), d.What, d.Want, d.Got, d.Path)
		}
		files := &page.Table{Title: name + ": files in the end", Head: []string{"path", "what", "expected", "got"},
			Left: 4, Of: len(r.Tree)}
		for _, d := range r.Tree[:min(len(r.Tree), maxDifferences)] {
			files.Add(d.Path, d.What, d.Want, d.Got)
		}
		s.Blocks = append(s.Blocks, calls, files)
	}
	s.Data = data
	return s, checked
}

func spreadText(v Spread, format func(int64) string) string {
	if v.Min == v.Max {
		return format(v.Median)
	}
	return format(v.Median) + " (" + format(v.Min) + "–" + format(v.Max) + ")"
}

func share(n, of int64) string {
	if of <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(of))
}

func dash(n int64, format func(int64) string) string {
	if n == 0 {
		return "–"
	}
	return format(n)
}
