// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"
	"unicode"

	"github.com/iotape/iotape/model/aggregate"
)

// model is what the screen shows, and how.
type model struct {
	o     Options
	title string
	quit  func()

	width, height int

	last   *aggregate.IntervalSnapshot // shown
	sum    *aggregate.Table            // since the beginning
	rates  []float64                   // calls in a second, of the last read-outs
	paused bool

	by     aggregate.By // shown, of the table's
	totals bool         // show sums, not the last interval
	filter string       // rows are shown whose names contain it
	typing bool         // it is being typed
	help   bool

	selected aggregate.Key // the row that is looked at
	chosen   bool          // there is one
	first    int           // row at the top
	visible  []aggregate.Row

	notes []noted
}

type noted struct {
	text string
	loud bool
}

const (
	maxRates = 512
	maxNotes = 100
	maxTyped = 64
)

func newModel(o Options, title string) *model {
	o.Order = o.order()
	return &model{o: o, title: title, width: 80, height: 24}
}

// take takes a read-out.
func (m *model) take(r *aggregate.IntervalSnapshot) {
	if m.sum == nil {
		m.sum, m.by = aggregate.NewTable(r.By, 0), r.By
	}
	m.sum.Merge(r.Table)
	m.rates = append(m.rates, r.Rate(r.Total().Calls))
	m.rates = m.rates[max(0, len(m.rates)-maxRates):]
	if !m.paused || m.last == nil {
		m.last = r
	}
}

func (m *model) note(text string, loud bool) {
	m.notes = append(m.notes, noted{strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text), loud})
	m.notes = m.notes[max(0, len(m.notes)-maxNotes):]
}

// toggles are the keys that show and hide dimensions.
var toggles = map[string]aggregate.By{
	"o": aggregate.ByOp, "u": aggregate.ByUser, "p": aggregate.ByProcess, "e": aggregate.ByExtension, "l": aggregate.ByLatency,
	"f": aggregate.ByFile, "d": aggregate.ByDir, "c": aggregate.ByContainer,
	"n": aggregate.ByUnit, "r": aggregate.ByCgroup, "w": aggregate.ByPod,
}

// key handles a key by its name; text is what it types.
func (m *model) key(name, text string) {
	if m.typing {
		m.typed(name, text)
		return
	}
	if act := keys[name]; act != nil {
		act(m)
		return
	}
	if d := toggles[name]; d != 0 && m.sum != nil && m.sum.By&d != 0 && m.by^d != 0 {
		m.by ^= d
		m.chosen = false
	}
}

// keys are the other keys, by their names.
var keys = func() map[string]func(m *model) {
	table := map[string]func(m *model){}
	on := func(act func(m *model), names ...string) {
		for _, n := range names {
			table[n] = act
		}
	}
	on(func(m *model) { m.quit() }, "q", "ctrl+c", "ctrl+d")
	on(func(m *model) { m.help = !m.help }, "?", "h", "f1")
	on((*model).back, "esc")
	on(func(m *model) { m.sort(1) }, "s", "right")
	on(func(m *model) { m.sort(-1) }, "S", "shift+s", "left")
	on(func(m *model) { m.totals = !m.totals }, "t")
	on(func(m *model) { m.paused = !m.paused }, "space", " ")
	on(func(m *model) { m.typing = true }, "/")
	on(func(m *model) { m.move(1) }, "down", "j")
	on(func(m *model) { m.move(-1) }, "up", "k")
	on(func(m *model) { m.move(max(m.tableHeight()-1, 1)) }, "pgdown", "pgdn")
	on(func(m *model) { m.move(-max(m.tableHeight()-1, 1)) }, "pgup")
	on(func(m *model) { m.move(-len(m.visible)) }, "home", "g")
	on(func(m *model) { m.move(len(m.visible)) }, "end", "G", "shift+g")
	return table
}()

// back closes the help, or undoes the choice of a row, or the filter.
func (m *model) back() {
	switch {
	case m.help:
		m.help = false
	case m.chosen:
		m.chosen = false
	default:
		m.filter = ""
	}
}

// typed handles a key of the filter.
func (m *model) typed(name, text string) {
	switch name {
	case "enter":
		m.typing = false
	case "esc", "ctrl+c":
		m.typing, m.filter = false, ""
	case "ctrl+u":
		m.filter = ""
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	default:
		for _, r := range text {
			if unicode.IsPrint(r) && len(m.filter) < maxTyped {
				m.filter += string(r)
			}
		}
	}
}

// sort goes to another order.
func (m *model) sort(step int) {
	orders := aggregate.Orders()
	i := slices.Index(orders, m.o.Order) + step
	m.o.Order = orders[(i+len(orders))%len(orders)]
}

// move moves the choice of a row.
func (m *model) move(step int) {
	if len(m.visible) == 0 {
		return
	}
	i := m.choice()
	switch {
	case i < 0 && step > 0:
		i = step - 1
	case i < 0:
		i = len(m.visible) + step
	default:
		i += step
	}
	i = min(max(i, 0), len(m.visible)-1)
	m.selected, m.chosen = m.visible[i].Key, true
}

// choice returns which of the visible rows is chosen, -1 if none.
func (m *model) choice() int {
	if !m.chosen {
		return -1
	}
	return slices.IndexFunc(m.visible, func(r aggregate.Row) bool { return r.Key == m.selected })
}

// table returns what is shown.
func (m *model) table() *aggregate.Table {
	t := m.sum
	if !m.totals {
		t = m.last.Table
	}
	if m.by != t.By {
		t = t.Project(m.by)
	}
	return t
}

// look finds the rows that fit the filter.
func (m *model) look(t *aggregate.Table) {
	m.visible = t.Sorted(m.o.Order)
	if m.filter == "" {
		return
	}
	want := strings.ToLower(m.filter)
	m.visible = slices.DeleteFunc(m.visible, func(r aggregate.Row) bool {
		return !strings.Contains(strings.ToLower(strings.Join(m.o.names(t.By, r.Key), " ")), want)
	})
}
