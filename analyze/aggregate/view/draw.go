// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/wallclock"
	"github.com/iotape/iotape/model/aggregate"
)

// Escapes of the terminal. The renderer leaves out what the terminal cannot do.
const (
	bold    = "\x1b[1m"
	dim     = "\x1b[2m"
	inverse = "\x1b[7m"
	red     = "\x1b[31m"
	normal  = "\x1b[0m"
)

const (
	panelHeight = 8  // lines of the histogram
	panelFrom   = 20 // lines of the screen, from which on there is one
	noteLines   = 3
)

// draw returns the lines of the screen.
func (m *model) draw() []string {
	if m.last == nil {
		return []string{bold + fit("iotape top: "+m.title, m.width) + normal,
			fit("waiting for the first read-out …", m.width)}
	}
	if m.help {
		return m.drawHelp()
	}
	t := m.table()
	m.look(t)
	lines := m.drawHead()
	lines = append(lines, m.drawTable(t)...)
	if m.panel() {
		lines = append(lines, m.drawPanel(t)...)
	}
	for _, n := range m.notes[max(0, len(m.notes)-m.noteCount()):] {
		style := dim
		if n.loud {
			style = red + bold
		}
		lines = append(lines, style+fit(n.text, m.width)+normal)
	}
	lines = append(lines, m.drawFoot())
	return lines[:min(len(lines), max(m.height, 1))]
}

func (m *model) panel() bool    { return m.height >= panelFrom }
func (m *model) noteCount() int { return min(len(m.notes), noteLines) }

// tableHeight is how many rows of the table fit.
func (m *model) tableHeight() int {
	n := m.height - 4 - m.noteCount() // two of the head, the table's, the foot
	if m.panel() {
		n -= panelHeight
	}
	return max(n, 1)
}

func (m *model) drawHead() []string {
	r := m.last
	c := r.Total()
	state := m.o.Clock.Text(r.At, wallclock.TimeDay)
	if m.paused {
		state = "PAUSED " + state
	}
	title := fit("iotape top: "+m.title, max(m.width-runes(state)-1, 0))
	first := bold + title + strings.Repeat(" ", max(m.width-runes(title)-runes(state), 1)) + state + normal
	second := fmt.Sprintf("%s calls/s  %s failed/s  read %s/s  wrote %s/s ", report.Count(uint64(r.Rate(c.Calls)+0.5)),
		report.Count(uint64(r.Rate(c.Failed)+0.5)),
		report.Bytes(uint64(r.Rate(c.Read))), report.Bytes(uint64(r.Rate(c.Written))))
	if r.By&aggregate.BySignal != 0 {
		second = fmt.Sprintf("%s signals/s  %s fatal/s ", report.Count(uint64(r.Rate(c.Calls)+0.5)),
			report.Count(uint64(r.Rate(c.Failed)+0.5)))
	}
	if room := m.width - runes(second) - 1; room > 8 {
		second += dim + " " + history(m.rates, min(room-1, 60)) + normal
	} else {
		second = fit(second, m.width)
	}
	return []string{first, second}
}

// history draws the last rates.
func history(rates []float64, width int) string {
	rates = rates[max(0, len(rates)-width):]
	most := 0.0
	for _, v := range rates {
		most = max(most, v)
	}
	var b strings.Builder
	for _, v := range rates {
		if most == 0 {
			b.WriteRune('▁')
			continue
		}
		b.WriteRune('▁' + rune(v/most*7))
	}
	return b.String()
}

// expendable are the columns that go first when there is no room, by their place behind
// the names: max, failed, busy, written, read, p50, p99, the sparkline.
var expendable = []int{7, 1, 4, 3, 2, 5, 6, 8}

// drawTable draws the head and the rows that fit.
func (m *model) drawTable(t *aggregate.Table) []string {
	elapsed := m.last.Elapsed
	if m.totals {
		elapsed = 0
	}
	height := m.tableHeight()
	if i := m.choice(); i >= 0 {
		m.first = min(m.first, i)
		m.first = max(m.first, i-height+1)
	} else {
		m.first = 0
	}
	m.first = max(min(m.first, len(m.visible)-height), 0)
	shown := m.visible[m.first:min(m.first+height, len(m.visible))]

	names := len(t.By.Names())
	head := append(headOf(t.By), countHead(t.By, elapsed)...)
	table := [][]string{head}
	for _, r := range shown {
		table = append(table, append(m.o.names(t.By, r.Key), countCells(t.By, r.Counts, elapsed)...))
	}
	widths, keep := m.columns(table, names)
	var lines []string
	for i, row := range table {
		var b strings.Builder
		for col, cell := range row {
			if !keep[col] {
				continue
			}
			if b.Len() > 0 {
				b.WriteString("  ")
			}
			cell = fit(cell, widths[col])
			pad := strings.Repeat(" ", widths[col]-runes(cell))
			if col < names {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		line := fit(b.String(), m.width)
		line += strings.Repeat(" ", max(m.width-runes(line), 0))
		switch {
		case i == 0:
			line = inverse + m.marked(line, head, names) + normal
		case m.chosen && shown[i-1].Key == m.selected:
			line = bold + inverse + line + normal
		}
		lines = append(lines, line)
	}
	for len(lines) <= height {
		lines = append(lines, "")
	}
	if len(m.visible) == 0 && m.filter != "" {
		lines[1] = fit("no row has "+strconv.Quote(m.filter), m.width)
	}
	return lines
}

// marked makes the column bold that the rows are sorted by.
func (m *model) marked(line string, head []string, names int) string {
	at := map[aggregate.Order]int{aggregate.OrderCalls: 0, aggregate.OrderFailed: 1, aggregate.OrderBytes: 2,
		aggregate.OrderTime: 4, aggregate.OrderP99: 6, aggregate.OrderMax: 7}
	name := head[0]
	if i, ok := at[m.o.Order]; ok && names+i < len(head) {
		name = head[names+i]
	}
	if i := strings.Index(line, name); i >= 0 {
		return line[:i] + bold + name + "\x1b[22m" + line[i+len(name):]
	}
	return line
}

// columns returns the widths of a table's columns, and which of them are shown.
func (m *model) columns(table [][]string, names int) (widths []int, keep []bool) {
	widths, keep = widthsOf(table), make([]bool, len(table[0]))
	total := -2
	for i := range keep {
		keep[i] = true
		if i < names {
			widths[i] = min(widths[i], 28)
		} else if i < len(keep)-1 {
			widths[i] = max(widths[i], 8) // so that columns do not jump about
		}
		total += widths[i] + 2
	}
	for _, i := range expendable {
		if total <= m.width {
			break
		}
		if names+i >= len(widths) {
			continue // rows of signals have fewer
		}
		keep[names+i] = false
		total -= widths[names+i] + 2
	}
	return widths, keep
}

// drawPanel draws the latencies of the chosen row, or of all that are shown.
func (m *model) drawPanel(t *aggregate.Table) []string {
	what, c := "all", &aggregate.Counts{}
	if m.filter != "" {
		what = "all rows shown"
	}
	for _, r := range m.visible {
		c.Add(r.Counts)
	}
	if m.chosen {
		what = strings.TrimSpace(strings.Join(m.o.names(t.By, m.selected), " "))
		if c = t.Row(m.selected); c == nil {
			c = &aggregate.Counts{}
		}
	}
	side := []string{
		bold + fit(what, 30) + normal,
		fmt.Sprintf("calls  %s, %s failed", report.Count(c.Calls), report.Count(c.Failed)),
		fmt.Sprintf("mean   %s", report.Duration(int64(c.MeanNS()))),
		fmt.Sprintf("p50    %s", report.Duration(int64(c.Quantile(0.5)))),
		fmt.Sprintf("p90    %s", report.Duration(int64(c.Quantile(0.9)))),
		fmt.Sprintf("p99    %s", report.Duration(int64(c.Quantile(0.99)))),
		fmt.Sprintf("max    %s", report.Duration(int64(min(c.MaxNS, 1<<62)))),
	}
	if t.By&aggregate.BySignal != 0 { // they have no latencies
		side = append(side[:1], fmt.Sprintf("signals  %s, %s fatal", report.Count(c.Calls), report.Count(c.Failed)),
			"", "", "", "", "")
	}
	chart := histogram(c, panelHeight-2)
	lines := []string{dim + strings.Repeat("─", max(m.width, 0)) + normal}
	for i := range panelHeight - 1 {
		line := fit(chart[i], m.width)
		if i == panelHeight-2 {
			line = dim + line + normal
		}
		if m.width >= 2*cells+34 {
			line += "   " + side[i]
		}
		lines = append(lines, line)
	}
	return lines
}

// histogram draws latencies as bars of so many lines, and an axis below them.
func histogram(c *aggregate.Counts, height int) []string {
	n := octaves(&c.Latency)
	most := max(slices.Max(n[:]), 1)
	lines := make([]string, 0, height+1)
	for line := range height {
		var b strings.Builder
		for _, v := range n {
			eighths := int(float64(v) / float64(most) * float64(8*height))
			if v > 0 {
				eighths = max(eighths, 1) // few are not none
			}
			eighths = min(max(eighths-8*(height-1-line), 0), 8)
			cell := ' '
			if eighths > 0 {
				cell = '▁' + rune(eighths-1)
			}
			b.WriteRune(cell)
			b.WriteRune(cell)
		}
		lines = append(lines, b.String())
	}
	axis := []rune(strings.Repeat("─", 2*cells))
	for ns, label := range map[time.Duration]string{64: "64ns", 1 << 10: "1µs", 1 << 14: "16µs", 1 << 17: "128µs",
		1 << 20: "1ms", 1 << 24: "16ms", 1 << 27: "128ms", 1 << 30: "1s"} {
		at := 2 * (int(aggregate.Octave(uint64(ns))) - 1 - firstCell)
		copy(axis[at:], []rune(label))
	}
	return append(lines, string(axis))
}

func (m *model) drawFoot() string {
	if m.typing {
		return bold + fit("/"+m.filter+"█  (enter keeps it, esc ends it)", m.width) + normal
	}
	parts := []string{"q quit", "s sort: " + string(m.o.Order),
		"t " + map[bool]string{false: "sums", true: "rates"}[m.totals], "/ filter", "space pause", "↑↓ row", "? help"}
	if m.filter != "" {
		parts[3] = "/ " + m.filter
	}
	if rest := len(m.visible) - m.first - m.tableHeight(); rest > 0 {
		parts = append(parts, fmt.Sprintf("%d rows below", rest))
	}
	return dim + fit(strings.Join(parts, "  "), m.width) + normal
}

func (m *model) drawHelp() []string {
	lines := []string{
		bold + "iotape top: keys" + normal, "",
		"q, Ctrl-C       quit; a command that top started is ended with SIGTERM",
		"s →  S ←        sort by the next, by the previous column",
		"t               sums since the beginning, or rates of the last interval",
		"space           hold the table; counting goes on",
		"/               show rows whose names contain a text; esc shows all again",
		"↑ ↓ PgUp PgDn   choose a row: its latencies are below; esc chooses none",
		"o u p e l f d   show or hide operation, user, process, extension, latency, file,",
		"c n r w         directory, container, unit, control group, pod, of those that --by has",
		"? h             this page", "",
		"Latencies: one bar for each power of two, from 64 ns to 17 s. In the table a",
		"step of a bar is a factor of three; below it bars are as long as their share.",
	}
	for i, l := range lines {
		lines[i] = fit(l, max(m.width, 20))
	}
	return lines[:min(len(lines), max(m.height, 1))]
}

func runes(s string) int { return len([]rune(s)) }

// fit cuts a text to a width.
func fit(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	if width <= 1 {
		return string(r[:max(width, 0)])
	}
	return string(r[:width-1]) + "…"
}
