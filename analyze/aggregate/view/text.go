// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/wallclock"
	"github.com/iotape/iotape/model/aggregate"
)

// Options says how tables are shown.
type Options struct {
	Order aggregate.Order // "" is calls
	Rows  int             // at most so many, the others are summed up in one line; 0: all
	// Width is how wide a table may be; if it were wider, it has no picture of the
	// latencies. 0: as wide as it is.
	Width int
	// UserName names a user, nil or "": by number.
	UserName func(uid uint32) string
	Clock    wallclock.Form // of headings and alarms
}

func (o *Options) order() aggregate.Order {
	if o.Order == "" {
		return aggregate.OrderCalls
	}
	return o.Order
}

// Text writes a table of what was counted in an interval, as rates, or, if elapsed is 0,
// of all that was, as numbers.
func (o *Options) Text(w io.Writer, t *aggregate.Table, elapsed time.Duration) error {
	table := [][]string{append(headOf(t.By), countHead(t.By, elapsed)...)}
	rows := t.Sorted(o.order())
	shown := rows
	if o.Rows > 0 && len(rows) > o.Rows {
		shown = rows[:o.Rows]
	}
	for i := range shown {
		table = append(table, append(o.names(t.By, shown[i].Key), countCells(t.By, shown[i].Counts, elapsed)...))
	}
	if rest := rows[len(shown):]; len(rest) > 0 {
		var all aggregate.Counts
		for i := range rest {
			all.Add(rest[i].Counts)
		}
		name := make([]string, len(t.By.Names()))
		name[0] = fmt.Sprintf("(%s more)", report.Plural(uint64(len(rest)), "row", "rows"))
		table = append(table, append(name, countCells(t.By, &all, elapsed)...))
	}
	drop := 0
	if widths := widthsOf(table); t.By&aggregate.BySignal == 0 && o.Width > 0 &&
		sum(widths)+2*(len(widths)-1) > o.Width {
		drop = 1
	}
	lines := report.Table{Head: table[0][:len(table[0])-drop], Left: len(t.By.Names())}
	for _, row := range table[1:] {
		lines.Add(row[:len(row)-drop]...)
	}
	return lines.Write(w)
}

// widthsOf returns the widths of a table's columns.
func widthsOf(table [][]string) []int {
	widths := make([]int, len(table[0]))
	for _, row := range table {
		for i, cell := range row {
			widths[i] = max(widths[i], runes(cell))
		}
	}
	return widths
}

func sum(numbers []int) (total int) {
	for _, n := range numbers {
		total += n
	}
	return total
}

func headOf(by aggregate.By) []string {
	head := by.Names()
	for i, name := range head {
		if name == "op" {
			head[i] = "operation"
		}
	}
	return head
}

func countHead(by aggregate.By, elapsed time.Duration) []string {
	switch {
	case by&aggregate.BySignal != 0 && elapsed > 0:
		return []string{"signals/s", "fatal/s"}
	case by&aggregate.BySignal != 0:
		return []string{"signals", "fatal"}
	}
	if elapsed > 0 {
		return []string{"calls/s", "failed/s", "read/s", "written/s", "busy", "p50", "p99", "max", latencyHead}
	}
	return []string{"calls", "failed", "read", "written", "time", "p50", "p99", "max", latencyHead}
}

const none = "–"

func countCells(by aggregate.By, c *aggregate.Counts, elapsed time.Duration) []string {
	cell := func(n uint64, unit func(uint64) string) string {
		if n == 0 {
			return none
		}
		if elapsed > 0 {
			n = max(uint64(float64(n)/elapsed.Seconds()+0.5), 1)
		}
		return unit(n)
	}
	ns := func(n uint64) string {
		if c.Timed() == 0 {
			return none
		}
		return report.Duration(int64(min(n, 1<<62)))
	}
	busy := ns(c.NS)
	if elapsed > 0 {
		busy = none
		if c.NS > 0 {
			busy = strconv.FormatFloat(100*float64(c.NS)/float64(elapsed), 'f', 1, 64) + " %"
		}
	}
	counts := []string{cell(c.Calls, report.Count), cell(c.Failed, report.Count)}
	if by&aggregate.BySignal != 0 {
		return counts
	}
	return append(counts, cell(c.Read, report.Bytes), cell(c.Written, report.Bytes),
		busy, ns(c.Quantile(0.5)), ns(c.Quantile(0.99)), ns(c.MaxNS), Sparkline(&c.Latency))
}

// names returns the cells of a row's key.
func (o *Options) names(by aggregate.By, k aggregate.Key) []string {
	var cells []string
	for _, d := range by.Names() {
		cell := ""
		switch {
		case k.Other:
			if cell = ""; len(cells) == 0 {
				cell = "(no room)"
			}
		case d == "process":
			cell = report.Printable(k.Comm) + "[" + strconv.FormatUint(uint64(k.PID), 10) + "]"
		case d == "user":
			cell = o.user(k.UID)
		case d == "signal":
			cell = event.SignalName(int(k.Signal))
		case d == "op":
			cell = opName(k.Op)
		case d == "file":
			cell = orNone(k.File)
		case d == "dir":
			cell = orNone(k.Dir)
		case d == "container":
			cell = orNone(k.Place.Container)
		case d == "cgroup":
			cell = orNone(k.Place.Cgroup)
		case d == "unit":
			cell = orNone(k.Place.Unit)
		case d == "pod":
			cell = orNone(k.Place.Pod)
		case d == "extension":
			if cell = report.Printable(k.Ext); cell == "" {
				cell = none
			} else {
				cell = "." + cell
			}
		case d == "latency":
			cell = octaveName(k.Octave)
		}
		cells = append(cells, cell)
	}
	return cells
}

// orNone returns a name of a row, that is fit for a terminal.
func orNone(name string) string { return cmp.Or(report.Printable(name), none) }

func (o *Options) user(uid uint32) string {
	if o.UserName != nil {
		if name := o.UserName(uid); name != "" {
			return report.Printable(name)
		}
	}
	return strconv.FormatUint(uint64(uid), 10)
}

func opName(op event.Op) string {
	if op == event.OpUnknown {
		return "(unknown)"
	}
	return op.String()
}

func octaveName(octave uint8) string {
	if octave == 0 {
		return "(not known)"
	}
	low, high := aggregate.OctaveRange(octave)
	return report.Duration(int64(low)) + "–" + report.Duration(int64(min(high, 1<<62)))
}

// The sparkline has a cell for each power of two from 64 ns to 17 s, whatever the row, so
// that rows can be compared; what is shorter or longer is in the first or the last.
const (
	firstCell   = 6
	cells       = 28
	latencyHead = "64n 1µs       1ms       1s  "
)

// octaves returns how many calls each cell has.
func octaves(h *aggregate.Histogram) (n [cells]uint64) {
	for i, calls := range h {
		low, _ := aggregate.BucketRange(i)
		cell := int(aggregate.Octave(low)) - 1 - firstCell
		n[min(max(cell, 0), cells-1)] += calls
	}
	return n
}

// Sparkline draws a histogram of latencies in one line. A bar's height is the logarithm
// of its share: one step less is a third of it.
func Sparkline(h *aggregate.Histogram) string {
	n := octaves(h)
	most := uint64(0)
	for _, v := range n {
		most = max(most, v)
	}
	var b strings.Builder
	for _, v := range n {
		b.WriteRune(bar(v, most))
	}
	return b.String()
}

func bar(v, most uint64) rune {
	if v == 0 {
		return '·'
	}
	height := 7
	for ; height > 0 && v < most; height-- {
		v = min(v, 1<<62) * 3
	}
	return rune('▁' + height)
}
