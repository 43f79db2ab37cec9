package settle

import (
	"slices"

	"github.com/iotape/iotape/event"
)

// search looks for an order of calls in which each has the result that was recorded. It
// goes through the orders that real time allows, depth first, the tape's first (Wing and
// Gong, Testing and verifying concurrent objects, JPDC 1993; with the memory of
// Lowe, Testing for linearizability, 2017).
type search struct {
	calls []*slot
	first int     // the first call, in the tape's order, that has no place yet
	early []int64 // of each call, when the first of it and those behind it began
	prev  []int32 // of each call, the number of the one that its thread made before, -1 if there is none
	lasts map[uint32]int32
	path  []step
	best  []int32 // the order that was found to explain the most, in the tape's order
	got   int     // first, after best
	order []*slot
	list  []*slot // calls, with looks
	looks []slot
	parts []*slot             // calls, with lookups that have places of their own
	dead  map[uint64]struct{} // calls placed and the state after them, from which nothing leads on
	done  uint64              // hash of the calls that are placed

	content  contents
	racy     bool // some raced for content
	doubtful bool // some have a doubt
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

// run returns an order of the calls, in which those that it does not explain have a
// Doubt, and with them the lookups that have places of their own. It leaves the state as it
// was.
func (r *search) run(s *state, calls []*slot, marks bool) []*slot {
	order := r.find(s, calls, marks)
	if !r.doubtful {
		return order
	}
	all := r.apart(s, calls)
	if len(all) == len(calls) {
		return order
	}
	was := doubts(calls)
	unsettle(calls)
	if order = r.find(s, all, marks); doubts(calls) > was {
		unsettle(calls)
		order = r.find(s, calls, marks)
	}
	return order
}

// doubts counts the calls that have one.
func doubts(calls []*slot) (n int) {
	for _, sl := range calls {
		if sl.doubt != 0 {
			n++
		}
	}
	return n
}

// unsettle forgets what a search found.
func unsettle(slots []*slot) {
	for _, sl := range slots {
		sl.before, sl.found, sl.doubt = nil, unknown, 0
	}
}

// find returns an order of calls, or of calls and lookups.
func (r *search) find(s *state, calls []*slot, marks bool) []*slot {
	r.begin(calls)
	if with := r.withTold(s, calls); len(with) > len(calls) {
		calls = with
		r.begin(calls)
	}
	s.searching, s.mode, s.hash = true, strict, 0
	next, base, tries, left := 0, 0, 0, 8*maxTries
	for len(r.path) < len(calls) {
		if c := r.try(s, next, marks); c >= 0 {
			r.path[len(r.path)-1].choice = c
			next = r.first
			continue
		}
		left--
		if tries++; r.first > r.got {
			r.remember()
			tries = 0
		}
		if len(r.path) > base && len(r.path) > len(r.best)-maxBack && tries < max(minTries, min(maxTries, left)) {
			r.bury(s)
			next = r.undo(s).choice + 1
			continue
		}
		r.resume(s, base, marks)
		r.forced(s, marks)
		base, tries, next = len(r.path), 0, r.first
		clear(r.dead)
	}
	s.back(0)
	s.searching = false
	return r.places(s)
}

func (r *search) begin(calls []*slot) {
	r.calls, r.first, r.done, r.doubtful, r.racy = calls, 0, 0, false, false
	r.content.begin()
	r.path, r.best, r.got = r.path[:0], r.best[:0], -1
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
		calls[i].taken = false
		r.racy = r.racy || calls[i].racy
		r.early[i] = min(r.early[i+1], calls[i].ev.Enter)
	}
}

// try gives the next place to a call that may have it, the first of those that were not
// tried before: choices from next on. It returns the choice, -1 if there is none. A choice
// is a call's number; or that and the number of calls, for reads that look as if another
// call came first: they are tried last.
func (r *search) try(s *state, next int, marks bool) int {
	n := len(r.calls)
	if next < n {
		if c := r.tryFrom(s, next, false, marks); c >= 0 {
			return c
		}
		next = n + r.first
	}
	if r.racy {
		if c := r.tryFrom(s, next-n, true, marks); c >= 0 {
			return n + c
		}
	}
	return -1
}

func (r *search) tryFrom(s *state, i int, premature, marks bool) int {
	// Nothing may come before a call that had returned when it was made.
	limit := r.calls[r.first].exit
	for ; i < len(r.calls) && r.early[i] <= limit; i++ {
		sl := r.calls[i]
		if sl.taken || sl.ev.Enter > limit || !r.inTurn(i) || r.racy && r.premature(s, sl) != premature {
			continue
		}
		mark := len(s.log)
		if r.explain(s, sl, marks) {
			r.take(i, mark)
			if len(r.dead) == 0 {
				return i
			}
			if _, dead := r.dead[s.hash^r.done]; !dead {
				return i
			}
			r.untake()
		}
		s.back(mark)
	}
	return -1
}

// explain does a call on the state and the content of its file.
func (r *search) explain(s *state, sl *slot, marks bool) bool {
	if !s.explain(&sl.ev, &sl.subject, marks) {
		return false
	}
	if sl.of != nil && sl.subject.found >= 0 {
		sl.found = s.get(sl.subject.found)
	}
	if sl.told >= 0 && !sl.later && s.counts(s.files[sl.subject.file].size) && !s.is(s.files[sl.subject.file].size, sl.told, DoubtSize) {
		return false
	}
	switch {
	case sl.span.file < 0 || !s.counts(s.files[sl.span.file].content):
	case sl.span.writes:
		r.content.wrote(s, sl)
	case !r.content.sees(s, sl):
		return s.overlooks(DoubtContent)
	}
	return true
}

// inTurn reports whether the call that the thread made before has a place.
func (r *search) inTurn(i int) bool { return r.prev[i] < 0 || r.calls[r.prev[i]].taken }

// requests is the first operation that a thread has under way beside others.
const requests = event.Op(1024)

func (r *search) take(i, mark int) {
	r.path = append(r.path, step{int32(i), i, r.first, mark})
	r.calls[i].taken = true
	r.done ^= mix(uint64(i)+1, 0)
	for r.first < len(r.calls) && r.calls[r.first].taken {
		r.first++
	}
}

func (r *search) untake() step {
	st := r.path[len(r.path)-1]
	r.path = r.path[:len(r.path)-1]
	r.calls[st.call].taken = false
	r.done ^= mix(uint64(st.call)+1, 0)
	r.first = st.first
	return st
}

// bury notes that nothing leads on from here.
func (r *search) bury(s *state) { r.dead[s.hash^r.done] = struct{}{} }

// undo takes the last call's place away.
func (r *search) undo(s *state) step {
	st := r.untake()
	s.back(st.mark)
	return st
}

// remember keeps the order found so far as the best.
func (r *search) remember() {
	r.best, r.got = r.best[:0], r.first
	for _, st := range r.path {
		r.best = append(r.best, st.call)
	}
}

// resume goes back to the best order found, without the calls at its end that were to
// explain the one which it does not get past. The first base steps are not to be changed
// any more.
func (r *search) resume(s *state, base int, marks bool) {
	for len(r.best) > base && int(r.best[len(r.best)-1]) > r.got {
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
		r.explain(s, r.calls[i], marks)
		r.take(int(i), mark)
	}
}

// forced gives the next place to the first call in the tape's order, although its
// result is not what it would be.
func (r *search) forced(s *state, marks bool) {
	sl, mark := r.calls[r.first], len(s.log)
	s.mode, s.doubt = overlook, 0
	r.explain(s, sl, marks)
	s.mode = strict
	sl.doubt = s.doubt
	r.doubtful = r.doubtful || s.doubt != 0
	r.take(r.first, mark)
	r.remember()
}
