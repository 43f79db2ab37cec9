// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"slices"

	"github.com/iotape/iotape/event"
)

// search looks for an order of calls in which each has the result that was recorded. It
// goes through the orders that real time allows, depth first, the tape's first (Wing and
// Gong, Testing and verifying concurrent objects, JPDC 1993; with the memory of
// Lowe, Testing for linearizability, 2017).
type search struct {
	calls        []*slot
	first        int     // the first call, in the tape's order, that has no place yet
	early        []int64 // of each call, when the first of it and those behind it began
	prev         []int32 // of each call, the number of the one that its thread made before, -1 if there is none
	lasts        map[uint32]int32
	path         []step
	best         []int32 // the order that was found to explain the most, in the tape's order
	reached      int     // first, after best
	order        []*slot
	list         []*slot // calls, with observations
	observations []slot
	parts        []*slot             // calls, with the lookups that were split from them
	dead         map[uint64]struct{} // calls placed and the state after them, from which nothing leads on
	done         uint64              // hash of the calls that are placed

	content    contents
	racy       bool // some raced for content
	incomplete bool // some are not explained
}

// step is a call that was given a place.
type step struct {
	call   int32
	choice int
	first  int // search.first before
	mark   int // of the log before
}

// Bounds of a search. Of an order that cannot be completed, only the last maxBack calls
// are tried otherwise.
const (
	maxTries = 4096 // dead ends in a row that did not get further in the tape's order
	minTries = 16   // the same when a search has had all that it may
	maxBack  = 256
)

// run returns an order of the calls, with the lookups that were split from them. Calls that
// it does not explain are marked. It leaves the state as it was.
func (r *search) run(s *state, calls []*slot) []*slot {
	order := r.find(s, calls)
	if !r.incomplete {
		return order
	}
	all := r.splitSteps(s, calls)
	if len(all) == len(calls) {
		return order
	}
	was := countUnexplained(calls)
	resetOrder(calls)
	if order = r.find(s, all); countUnexplained(calls) > was {
		resetOrder(calls)
		order = r.find(s, calls)
	}
	return order
}

// countUnexplained counts the calls that are not explained.
func countUnexplained(calls []*slot) (n int) {
	for _, sl := range calls {
		if sl.unexplained != 0 {
			n++
		}
	}
	return n
}

// resetOrder clears the results of a search.
func resetOrder(slots []*slot) {
	for _, sl := range slots {
		sl.before, sl.found, sl.unexplained = nil, unknown, 0
	}
}

// find returns an order of calls, or of calls and lookups.
func (r *search) find(s *state, calls []*slot) []*slot {
	r.begin(calls)
	if with := r.insertObservations(s, calls); len(with) > len(calls) {
		calls = with
		r.begin(calls)
	}
	s.searching, s.mode, s.hash = true, strict, 0
	next, base, tries, left := 0, 0, 0, 8*maxTries
	for len(r.path) < len(calls) {
		if c := r.try(s, next); c >= 0 {
			r.path[len(r.path)-1].choice = c
			next = r.first
			continue
		}
		left--
		if tries++; r.first > r.reached {
			r.saveBest()
			tries = 0
		}
		if len(r.path) > base && len(r.path) > len(r.best)-maxBack && tries < max(minTries, min(maxTries, left)) {
			r.markDead(s)
			next = r.undo(s).choice + 1
			continue
		}
		r.resume(s, base)
		r.force(s)
		base, tries, next = len(r.path), 0, r.first
		clear(r.dead)
	}
	s.rollback(0)
	s.searching = false
	return r.finalOrder(s)
}

func (r *search) begin(calls []*slot) {
	r.calls, r.first, r.done, r.incomplete, r.racy = calls, 0, 0, false, false
	r.content.begin()
	r.path, r.best, r.reached = r.path[:0], r.best[:0], -1
	if r.dead == nil {
		r.dead, r.lasts = map[uint64]struct{}{}, map[uint32]int32{}
	}
	clear(r.dead)
	clear(r.lasts)
	r.prev = r.prev[:0]
	for i, sl := range calls {
		prev := int32(-1)
		if sl.ev.Op < requests {
			if p, ok := r.lasts[sl.ev.TID]; ok {
				prev = p
			}
			r.lasts[sl.ev.TID] = int32(i)
		}
		r.prev = append(r.prev, prev)
	}
	r.early = slices.Grow(r.early[:0], len(calls)+1)[:len(calls)+1]
	r.early[len(calls)] = 1<<63 - 1
	for i := len(calls) - 1; i >= 0; i-- {
		calls[i].placed = false
		r.racy = r.racy || calls[i].racy
		r.early[i] = min(r.early[i+1], calls[i].ev.Enter)
	}
}

// try gives the next place to a call that may have it, the first of those that were not
// tried before: choices from next on. It returns the choice, -1 if there is none. A choice
// is a call's number; or that plus the number of calls, for premature reads: they are tried
// last.
func (r *search) try(s *state, next int) int {
	n := len(r.calls)
	if next < n {
		if c := r.tryFrom(s, next, false); c >= 0 {
			return c
		}
		next = n + r.first
	}
	if r.racy {
		if c := r.tryFrom(s, next-n, true); c >= 0 {
			return n + c
		}
	}
	return -1
}

func (r *search) tryFrom(s *state, i int, premature bool) int {
	// Nothing may come before a call that had returned when it was made.
	limit := r.calls[r.first].exit
	for ; i < len(r.calls) && r.early[i] <= limit; i++ {
		sl := r.calls[i]
		if sl.placed || sl.ev.Enter > limit || !r.predecessorPlaced(i) || r.racy && r.premature(s, sl) != premature {
			continue
		}
		mark := len(s.log)
		if r.explain(s, sl) {
			r.place(i, mark)
			if len(r.dead) == 0 {
				return i
			}
			if _, dead := r.dead[s.hash^r.done]; !dead {
				return i
			}
			r.unplace()
		}
		s.rollback(mark)
	}
	return -1
}

// explain does a call on the state and the content of its file.
func (r *search) explain(s *state, sl *slot) bool {
	if !s.explain(&sl.ev, &sl.footprint) {
		return false
	}
	if sl.of != nil && sl.footprint.found >= 0 {
		sl.found = s.get(sl.footprint.found)
	}
	if sl.observed >= 0 && !sl.deferred && s.participates(s.files[sl.footprint.file].size) &&
		!s.mustEqual(s.files[sl.footprint.file].size, sl.observed, UnexplainedSize) {
		return false
	}
	switch {
	case sl.span.file < 0 || !s.participates(s.files[sl.span.file].content):
	case sl.span.writes:
		r.content.addVersion(s, sl)
	case !r.content.matches(s, sl):
		return s.tolerates(UnexplainedContent)
	}
	return true
}

// predecessorPlaced reports whether the thread's previous call has a place.
func (r *search) predecessorPlaced(i int) bool { return r.prev[i] < 0 || r.calls[r.prev[i]].placed }

// requests is the first operation that a thread has under way beside others.
const requests = event.Op(1024)

func (r *search) place(i, mark int) {
	r.path = append(r.path, step{int32(i), i, r.first, mark})
	r.calls[i].placed = true
	r.done ^= mix(uint64(i)+1, 0)
	for r.first < len(r.calls) && r.calls[r.first].placed {
		r.first++
	}
}

func (r *search) unplace() step {
	st := r.path[len(r.path)-1]
	r.path = r.path[:len(r.path)-1]
	r.calls[st.call].placed = false
	r.done ^= mix(uint64(st.call)+1, 0)
	r.first = st.first
	return st
}

// markDead notes that no order continues from here.
func (r *search) markDead(s *state) { r.dead[s.hash^r.done] = struct{}{} }

// undo takes the last call's place away.
func (r *search) undo(s *state) step {
	st := r.unplace()
	s.rollback(st.mark)
	return st
}

// saveBest keeps the present order as the best one.
func (r *search) saveBest() {
	r.best, r.reached = r.best[:0], r.first
	for _, st := range r.path {
		r.best = append(r.best, st.call)
	}
}

// resume goes back to the best order found, without the calls at its end that were to
// explain the one which it does not get past. The first base steps are not to be changed
// any more.
func (r *search) resume(s *state, base int) {
	for len(r.best) > base && int(r.best[len(r.best)-1]) > r.reached {
		r.best = r.best[:len(r.best)-1]
	}
	same := base
	for same < len(r.path) && same < len(r.best) && r.path[same].call == r.best[same] {
		same++
	}
	for len(r.path) > same {
		r.undo(s)
	}
	for _, i := range r.best[min(same, len(r.best)):] {
		mark := len(s.log)
		r.explain(s, r.calls[i])
		r.place(int(i), mark)
	}
}

// force gives the next place to the first call in the tape's order, although its
// result is not what it would be.
func (r *search) force(s *state) {
	sl, mark := r.calls[r.first], len(s.log)
	s.mode, s.unexplained = tolerate, 0
	r.explain(s, sl)
	s.mode = strict
	sl.unexplained = s.unexplained
	r.incomplete = r.incomplete || s.unexplained != 0
	r.place(r.first, mark)
	r.saveBest()
}
