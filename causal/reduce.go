// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"cmp"
	"slices"
)

// waitFor is a dependency between events of different threads: to can be made lag ns
// after from, which has the smaller number, is done.
type waitFor struct {
	to, from uint32
	lag      int64
}

// shortNS is a lag that is not worth its wait.
const shortNS = 2000

// Limits of what reduce knows of each thread. Beyond, a wait stays that could have been
// left out.
const (
	maxKnown   = 64 // threads
	maxHistory = 8  // states
)

// knows is what a thread knows to be done: of each thread, its events up to one. It is
// sorted by thread and never changed.
type knows []mark

func (k knows) of(line uint32) (event uint32, ok bool) {
	i, ok := slices.BinarySearchFunc(k, line, func(m mark, l uint32) int { return cmp.Compare(m.line, l) })
	if !ok {
		return 0, false
	}
	return k[i].event, true
}

// with returns k and more.
func (k knows) with(more knows, self uint32) knows {
	out := make(knows, 0, len(k)+len(more))
	for len(k)+len(more) > 0 {
		var m mark
		switch {
		case len(more) == 0 || len(k) > 0 && k[0].line < more[0].line:
			m, k = k[0], k[1:]
		case len(k) == 0 || more[0].line < k[0].line:
			m, more = more[0], more[1:]
		default:
			m = mark{k[0].line, max(k[0].event, more[0].event)}
			k, more = k[1:], more[1:]
		}
		if m.line != self {
			out = append(out, m)
		}
	}
	if len(out) > maxKnown { // the latest are the most useful
		slices.SortFunc(out, func(a, b mark) int { return cmp.Compare(b.event, a.event) })
		out = out[:maxKnown]
		slices.SortFunc(out, func(a, b mark) int { return cmp.Compare(a.line, b.line) })
	}
	return out
}

// history is what a thread knew, from which of its events on.
type history struct {
	now    knows
	states [maxHistory]struct {
		event uint32
		knows knows
	}
	n int
}

// at returns what the thread knew at an event, or less.
func (h *history) at(event uint32) knows {
	for i := h.n - 1; i >= max(0, h.n-maxHistory); i-- {
		if s := &h.states[i%maxHistory]; s.event <= event {
			return s.knows
		}
	}
	return nil
}

func (h *history) learn(event uint32, k knows) {
	h.now = k
	s := &h.states[h.n%maxHistory]
	s.event, s.knows = event, k
	h.n++
}

// reduce leaves out the waits that follow from others and the order within threads: the
// transitive reduction, as far as the limits above allow. The waits are sorted by their
// events; it uses their memory for the result.
func reduce(line []uint32, lines int, waits []waitFor) []waitFor {
	known := make([]history, lines)
	out := waits[:0]
	for len(waits) > 0 {
		n := 1
		for n < len(waits) && waits[n].to == waits[0].to {
			n++
		}
		group := waits[:n]
		waits = waits[n:]
		to := group[0].to
		// The latest first: earlier ones follow from it, never the other way.
		slices.SortFunc(group, func(a, b waitFor) int {
			return cmp.Or(cmp.Compare(b.from, a.from),
				cmp.Compare(b.lag, a.lag))
		})
		self := line[to]
		h := &known[self]
		now, first := h.now, len(out)
		for _, w := range group {
			from := line[w.from]
			e, ok := now.of(from)
			if done := ok && e >= w.from; done && w.lag < shortNS || done && laterLag(out[first:], w) {
				continue
			}
			now = now.with(known[from].at(w.from), self).with(knows{{from, w.from}}, self)
			if w.lag < shortNS {
				w.lag = 0
			}
			out = append(out, w)
		}
		slices.SortFunc(out[first:], func(a, b waitFor) int { return cmp.Compare(a.from, b.from) })
		if len(out) > first {
			h.learn(to, now)
		}
	}
	return out
}

// laterLag reports whether one of an event's waits is for the same event and no shorter.
func laterLag(waits []waitFor, w waitFor) bool {
	return slices.ContainsFunc(waits, func(o waitFor) bool { return o.from == w.from && o.lag >= w.lag })
}
