// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
)

// bandwidth is bytes and calls per second over time. The bytes of a call are spread
// evenly from its entry to its return, and over the parts of the time in proportion.
type bandwidth struct{ read, written, reads, writes, meta, sync, net *bins }

func newBandwidth(c *collector) view {
	return &bandwidth{newBins(c), newBins(c), newBins(c), newBins(c), newBins(c), newBins(c), newBins(c)}
}

func (v *bandwidth) see(s *seen) {
	if s.Kind != event.Call {
		return
	}
	switch s.kind {
	case report.Reading, report.Writing:
		v.read.spread(s.Enter, s.Exit, float64(s.io.Read))
		v.written.spread(s.Enter, s.Exit, float64(s.io.Written))
		if s.io.Reads {
			v.reads.add(s.Exit, 1)
		}
		if s.io.Writes {
			v.writes.add(s.Exit, 1)
		}
	case report.Metadata:
		v.meta.add(s.Exit, 1)
	case report.Syncing:
		v.sync.add(s.Exit, 1)
	case report.Network:
		v.net.spread(s.Enter, s.Exit, float64(s.io.Bytes()))
	}
}

func (v *bandwidth) section(*collector) page.Section {
	step := float64(v.read.step)
	bytes := &page.Chart{Title: "Bandwidth", X: page.NS, Y: page.BytesRate, Step: step,
		Series: []page.Series{{Name: "read", Values: v.read.perSecond()},
			{Name: "written", Values: v.written.perSecond()}, {Name: "sockets and pipes", Values: v.net.perSecond()}}}
	calls := &page.Chart{Title: "Calls", X: page.NS, Y: page.CountsRate, Step: step,
		Series: []page.Series{{Name: "reads", Values: v.reads.perSecond()},
			{Name: "writes", Values: v.writes.perSecond()}, {Name: "metadata", Values: v.meta.perSecond()}, {Name: "syncs", Values: v.sync.perSecond()}}}
	return page.Section{ID: "bandwidth", Title: "Bandwidth and calls over time", Blocks: []page.Block{bytes, calls},
		Note: "The bytes of a call are spread evenly from its entry to its return. Calls count when they return.",
		Data: map[string]any{"step_ns": v.read.step, "read_bytes": v.read.values, "written_bytes": v.written.values,
			"network_bytes": v.net.values, "reads": v.reads.values, "writes": v.writes.values, "metadata": v.meta.values, "syncs": v.sync.values}}
}

// heat is who moved bytes when: by process, by file and, where there are several, by
// host.
type heat struct {
	c                  *collector
	procs, files, host map[int]*bins
}

// maxHeat limits the rows that are kept: beyond it, new processes and files are not told
// apart.
const maxHeat = 4096

func newHeat(c *collector) view {
	return &heat{c, map[int]*bins{}, map[int]*bins{}, map[int]*bins{}}
}

func (v *heat) see(s *seen) {
	n := float64(s.io.Bytes())
	if n == 0 {
		return
	}
	v.row(v.procs, s.proc.id).spread(s.Enter, s.Exit, n)
	v.row(v.host, int(s.Host)).spread(s.Enter, s.Exit, n)
	if s.file != nil {
		v.row(v.files, s.file.id).spread(s.Enter, s.Exit, n)
	}
}

// othersRow is the row of all that is not told apart.
const othersRow = -1

func (v *heat) row(m map[int]*bins, id int) *bins {
	b := m[id]
	if b == nil {
		if len(m) >= maxHeat {
			id = othersRow
			if m[id] != nil {
				return m[id]
			}
		}
		b = newBins(v.c)
		m[id] = b
	}
	return b
}

type heatRow struct {
	Name  string    `json:"name"`
	Bytes float64   `json:"bytes"`
	Over  []float64 `json:"over_time"`
}

func (v *heat) section(c *collector) page.Section {
	rows := func(m map[int]*bins, name func(int) string) []heatRow {
		list := []heatRow{}
		for id, b := range m {
			r := heatRow{Over: b.values, Name: "(others)"}
			if id != othersRow {
				r.Name = name(id)
			}
			for _, n := range b.values {
				r.Bytes += n
			}
			list = append(list, r)
		}
		slices.SortFunc(list, func(a, b heatRow) int {
			return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
		})
		return list[:min(len(list), 2*c.o.Top)]
	}
	procs := rows(v.procs, func(id int) string { return c.procs.list[id].name() })
	files := rows(v.files, func(id int) string { return c.files.list[id].path })
	hosts := rows(v.host, func(id int) string { return c.tape.Host(uint32(id)).Head.Host })
	step := newBins(c).step
	s := page.Section{ID: "heat", Title: "Who moved bytes when",
		Note: "Bytes of calls, spread over their time. The shade is the square root of the share of the strongest.",
		Data: map[string]any{"step_ns": step, "processes": procs, "files": files, "hosts": hosts}}
	total := newBins(c)
	for _, b := range v.procs {
		for i, n := range b.values {
			total.values[i] += n
		}
	}
	s.Blocks = append(s.Blocks, &page.Chart{Title: "All processes", X: page.NS, Y: page.Bytes, Step: float64(step),
		Series: []page.Series{{Name: "bytes", Values: total.values}}})
	for _, h := range []struct {
		title string
		list  []heatRow
	}{{"By process", procs}, {"By file", files}, {"By host", hosts}} {
		if h.title == "By host" && len(h.list) < 2 {
			continue
		}
		m := &page.Heat{Title: h.title, X: page.NS, Unit: page.Bytes, Step: float64(step)}
		for _, r := range h.list {
			m.Rows = append(m.Rows,
				page.Series{Name: r.Name + " (" + report.Bytes(uint64(r.Bytes)) + ")", Values: r.Over})
		}
		s.Blocks = append(s.Blocks, m)
	}
	return s
}

// latency is how long calls took, over time: a map of log2 of the time, and the slowest.
type latency struct {
	by   [64]*bins // by log2 of ns
	slow []slowCall
	most int
	c    *collector
}

type slowCall struct {
	Seq     uint64 `json:"seq"` // of the event: iotape print --from shows it
	AtNS    int64  `json:"at_ns"`
	TookNS  int64  `json:"took_ns"`
	Op      string `json:"op"`
	Process string `json:"process"`
	Name    string `json:"name"`
}

func newLatency(c *collector) view { return &latency{most: 2 * c.o.Top, c: c} }

func (v *latency) see(s *seen) {
	if s.Kind != event.Call || !s.timed || !s.kind.IsIO() && s.kind != report.Network {
		return
	}
	k := bits.Len64(uint64(max(s.took, 1))) - 1
	if v.by[k] == nil {
		v.by[k] = newBins(v.c)
	}
	v.by[k].add(s.Exit, 1)
	if len(v.slow) == v.most && s.took <= v.slow[len(v.slow)-1].TookNS {
		return
	}
	x := slowCall{s.Seq, s.Enter - v.c.first, s.took, s.name, s.proc.name(), s.Name()}
	at, _ := slices.BinarySearchFunc(v.slow, x, func(a, b slowCall) int {
		return cmp.Or(cmp.Compare(b.TookNS, a.TookNS), cmp.Compare(a.Seq, b.Seq))
	})
	v.slow = slices.Insert(v.slow, at, x)
	v.slow = v.slow[:min(len(v.slow), v.most)]
}

func (v *latency) section(*collector) page.Section {
	m := &page.Heat{Title: "Latency over time: calls by how long they took", X: page.NS, Unit: page.Plain}
	type row struct {
		From  int64     `json:"from_ns"` // up to twice that
		Calls float64   `json:"calls"`
		Over  []float64 `json:"over_time"`
	}
	rows := []row{}
	for k := len(v.by) - 1; k >= 0; k-- {
		b := v.by[k]
		if b == nil {
			continue
		}
		m.Step = float64(b.step)
		r := row{From: 1 << k, Over: b.values}
		for _, n := range b.values {
			r.Calls += n
		}
		rows = append(rows, r)
		m.Rows = append(m.Rows,
			page.Series{Name: fmt.Sprintf("from %s: %s", report.Duration(1<<k), report.Count(uint64(r.Calls))),
				Values: b.values})
	}
	spread := &page.Bars{Title: "Calls by how long they took", Unit: page.Plain, Series: []page.Series{{Name: "calls"}}}
	for i := len(rows) - 1; i >= 0; i-- {
		spread.Labels = append(spread.Labels, report.Duration(rows[i].From))
		spread.Series[0].Values = append(spread.Series[0].Values, rows[i].Calls)
	}
	return page.Section{ID: "latency", Title: "Latency over time",
		Data: map[string]any{"step_ns": int64(m.Step), "rows": rows, "slowest": v.slow},
		Note: "Calls of files, sockets and pipes. Each row has those that took from its time to twice that. The " +
			"number of an event is that of iotape print.",
		Blocks: []page.Block{spread, m,
			tableOf("The slowest calls", []string{"took", "at", "event", "operation", "process", "file"}, -3, v.slow, 0, func(x *slowCall) []string {
				return []string{span(x.TookNS), span(x.AtNS), fmt.Sprint(x.Seq), x.Op, x.Process, x.Name}
			})}}
}

// sizes are how large reads and writes are: the ten classes of Darshan, and the most
// frequent exact sizes.
type sizes struct {
	read, written [10]uint64
	exact         [2]map[int64]uint64
}

// maxSizes limits the exact sizes that are counted.
const maxSizes = 1 << 16

var (
	sizeLimits = [...]int64{100, 1e3, 1e4, 1e5, 1e6, 4e6, 1e7, 1e8, 1e9}
	sizeNames  = []string{"0–100", "100–1k", "1k–10k", "10k–100k", "100k–1M", "1M–4M", "4M–10M", "10M–100M", "100M–1G", "1G+"}
)

func newSizes(*collector) view {
	return &sizes{exact: [2]map[int64]uint64{{}, {}}}
}

// sizeClass returns the class of a size in bytes. Limits belong to the class above.
func sizeClass(n int64) int {
	for i, limit := range sizeLimits {
		if n < limit {
			return i
		}
	}
	return len(sizeLimits)
}

func (v *sizes) see(s *seen) {
	if s.kind != report.Reading && s.kind != report.Writing || !s.OK() {
		return
	}
	count := func(which int, counts *[10]uint64, n int64) {
		counts[sizeClass(n)]++
		if m := v.exact[which]; len(m) < maxSizes || m[n] > 0 {
			m[n]++
		}
	}
	if s.io.Reads {
		count(0, &v.read, s.io.Read)
	}
	if s.io.Writes {
		count(1, &v.written, s.io.Written)
	}
}

type sizeRow struct {
	Way   string `json:"way"`
	Bytes int64  `json:"bytes"`
	Count uint64 `json:"count"`
}

func (v *sizes) section(*collector) page.Section {
	var common []sizeRow
	for which, way := range []string{"read", "write"} {
		list := []sizeRow{}
		for n, k := range v.exact[which] {
			list = append(list, sizeRow{way, n, k})
		}
		slices.SortFunc(list, func(a, b sizeRow) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Bytes, b.Bytes))
		})
		common = append(common, list[:min(len(list), 4)]...)
	}
	bars := &page.Bars{Title: "Calls by bytes moved", Labels: sizeNames,
		Series: []page.Series{{Name: "reads", Values: floats(v.read[:])},
			{Name: "writes", Values: floats(v.written[:])}}}
	return page.Section{ID: "sizes", Title: "Sizes of reads and writes",
		Data: map[string]any{"classes": sizeNames, "reads": v.read, "writes": v.written, "common": common},
		Note: "What calls moved, of those that succeeded. Sizes are in bytes, k, M and G are powers of 1000; a limit " +
			"belongs to the class above it.",
		Blocks: []page.Block{bars,
			tableOf("The most common sizes", []string{"", "bytes", "calls"}, 1, common, 0, func(r *sizeRow) []string {
				return []string{r.Way, report.Count(uint64(r.Bytes)), report.Count(r.Count)}
			})}}
}

func floats(list []uint64) []float64 {
	out := make([]float64, len(list))
	for i, n := range list {
		out[i] = float64(n)
	}
	return out
}
