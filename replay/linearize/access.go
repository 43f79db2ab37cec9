// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"github.com/iotape/iotape/event"
)

// access is how a call concerns a cell.
type access struct {
	cell int32
	mode accessMode
	// coupled: the call copies the value of a cell to another one. If calls race for one
	// of them, the values of the others must be known as well.
	coupled bool
}

type accessMode uint8

const (
	accessRead    accessMode = iota
	accessCommute            // changes it, in a way that commutes with other such changes
	accessWrite
	accessRange   // of content: calls race for ranges (collide)
	accessObserve // reports its value when the call returned: races with none
)

// findAccesses lists the cells that a call accesses, each once.
func (s *state) findAccesses(sl *slot) {
	t := &s.collector
	*t = accessCollector{state: s, list: sl.accesses[:0]}
	t.call(&sl.ev, &sl.footprint)
	if sl.span.file >= 0 {
		t.add(s.files[sl.span.file].content, accessRange)
	}
	if sl.observed = -1; sl.ev.Op < requests {
		sl.observed = sl.footprint.observedSize(&sl.ev)
	}
	if sl.observed >= 0 {
		t.add(s.files[sl.footprint.file].size, accessObserve)
	}
	sl.accesses = t.list
}

// floor is what a size is at least in the window: what it was before, unless a call
// there cuts it.
func (s *state) floor(size int32) int64 {
	c := &s.cells[size]
	if c.cut < s.oldest {
		return max(c.value, 0)
	}
	return c.floor
}

// noteShortening notes what a call does to the floor of a size. It reports whether that is lower
// now than calls of the window may have seen it.
func (s *state) noteShortening(sl *slot) bool {
	ev, sub := &sl.ev, &sl.footprint
	if sub.file < 0 || !ev.OK() {
		return false
	}
	to := int64(-1)
	switch sub.class {
	case classOpen:
		if sub.flags&(event.OpenTrunc|event.OpenCreat) != 0 {
			to = 0
		}
	case classTruncate:
		to = int64(ev.Args[1])
	case classResize:
		if sub.op == event.OpFtruncate {
			to = int64(ev.Args[1])
		} else if ev.Args[1]&fallocCollapse != 0 {
			to = 0
		}
	}
	if to < 0 {
		return false
	}
	size := s.files[sub.file].size
	c, floor := &s.cells[size], s.floor(size)
	c.cut, c.floor = sl.n, min(floor, to)
	return to < floor
}

// race notes a call's access to a cell, and marks the cell as raced if it conflicts with
// that of an overlapping call that returned before.
func (s *state) race(sl *slot, t access) {
	c, began, racing := &s.cells[t.cell], sl.ev.Enter, false
	switch t.mode {
	case accessRead:
		racing = max(c.adds, c.sets) > began
		c.reads = max(c.reads, sl.exit)
	case accessCommute:
		racing = max(c.reads, c.sets) > began
		c.adds, c.changed = max(c.adds, sl.exit), max(c.changed, sl.n)
	case accessWrite:
		racing = max(c.reads, c.adds, c.sets) > began
		c.sets, c.changed = max(c.sets, sl.exit), max(c.changed, sl.n)
	}
	if racing {
		c.racing, s.racing = max(c.racing, sl.n), max(s.racing, sl.n)
	}
}

// raced reports whether calls of the window race for a cell.
func (s *state) raced(c int32) bool { return s.cells[c].racing >= s.oldest }

// spread marks the cells that a call couples to a raced one as raced, too. It reports
// whether there were any.
func (s *state) spread(sl *slot) bool {
	tied, racing := false, false
	for _, t := range sl.accesses {
		tied = tied || t.coupled && s.needed(t.cell)
		racing = racing || s.raced(t.cell)
	}
	if !tied || !racing {
		return false
	}
	for _, t := range sl.accesses {
		if t.coupled && s.needed(t.cell) {
			s.cells[t.cell].racing = s.oldest
		}
	}
	return true
}

// needed reports whether a cell that is not raced has to be searched to know its value: it
// changes in the window, or is not known before.
func (s *state) needed(c int32) bool {
	return !s.raced(c) && (s.cells[c].value == unknown || s.cells[c].changed >= s.oldest)
}

// member returns a cell with what it needs for the present search.
func (s *state) member(c int32) *cell {
	cell := &s.cells[c]
	if cell.round != s.round {
		cell.round, cell.root, cell.component = s.round, c, -1
	}
	return cell
}

// rootOf returns the root of a cell's component.
func (s *state) rootOf(c int32) int32 {
	for s.cells[c].root != c {
		s.cells[c].root = s.cells[s.cells[c].root].root
		c = s.cells[c].root
	}
	return c
}

// join puts the cells that are raced for, of those that one call concerns, into one
// component, and returns its root; -1 if none is raced for.
func (s *state) join(sl *slot) int32 {
	root := int32(-1)
	for _, t := range sl.accesses {
		if !s.raced(t.cell) {
			continue
		}
		s.member(t.cell)
		r := s.rootOf(t.cell)
		if root >= 0 && r != root {
			s.cells[r].root = root
			continue
		}
		root = r
	}
	return root
}
