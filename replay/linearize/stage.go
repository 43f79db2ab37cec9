// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"io"
	"slices"

	"github.com/iotape/iotape/event"
)

// Unexplained says what of an event's result no order of the calls explains, as far as
// the search went: a replay in the linear order may get another.
type Unexplained uint8

// The parts of a result.
const (
	UnexplainedResult  Unexplained = 1 << iota // the return value or error
	UnexplainedSize                            // the size that stat reported
	UnexplainedContent                         // the bytes that were read, or where they were written
	UnexplainedMode                            // the permissions that stat reported
	UnexplainedLinks                           // the number of names that stat reported
)

// Options change how a Stage works; nil is the default.
type Options struct {
	Arch event.Arch // of the recording: structures differ
	// Window is how many events are ordered together, at least 8. MaxWindow is how many
	// are if fewer leave a result unexplained. 0 is DefaultWindow and DefaultMaxWindow.
	Window, MaxWindow int
	// Content appends the content of a buffer of an event, like trace.Tape's Content. If
	// it is nil, only content that the event itself holds is compared.
	Content func(b *event.Buf, dst []byte) ([]byte, error)
	// Found, if it is not nil, gets the order that is found.
	Found *Order
}

// Defaults of Options.
const (
	DefaultWindow    = 2048
	DefaultMaxWindow = 65536
)

// Stage puts the events of a tape into an order that explains their results. See the
// package's page.
type Stage struct {
	next  func(*event.Event) error
	arch  event.Arch
	found *Order // nil: it is not kept

	state *state

	threads         event.Threads
	seen            map[uint32]struct{} // threads seen since something
	transfersPassed bool                // calls that move bytes passed without being followed
	pending         error               // what next returned; events before it are still to be given

	window      []*slot // of the tape, in its order; from done on not yet given
	done        int
	ready       int       // events up to here may be given
	size        int       // of the window
	most        int       // of a window that leaves something unexplained
	passing     footprint // of the event that passes
	pool        []*slot
	unexplained Unexplained
	// incomplete says that something in the window is not explained.
	incomplete bool

	n      uint64 // events that were in the window
	comps  []component
	before []access
	search search
}

// slot is an event in the window.
type slot struct {
	ev      event.Event
	inline  []byte // what the event's small content is kept in
	n       uint64 // number of the event, from 1
	exit    int64  // return; before it if the tape says that the call was done before another
	pos     int    // in the window
	emitted bool

	footprint   footprint
	tracked     bool
	accesses    []access
	span        span
	observed    int64 // size of its file at its return, -1 if it was not recorded
	deferred    bool  // observed may differ from what its effect left (see insertObservations)
	observation bool  // no call, but a size that was recorded with one (see insertObservations)
	racy        bool  // it raced for content
	data        []byte
	loaded      bool  // data is its content, empty if that is not known
	prev        *slot // the call on the file's content before it, if that is number prevN still
	prevN       uint64
	before      *slot // event to be returned before this one
	of          *slot // of a lookup that was split from a call: the call (see steps.go)
	found       int64 // of a link: the value of its old name at the lookup; unknown: the present one
	unexplained Unexplained
	placed      bool // in the search: it has a place
}

// New returns a stage that takes the events of a tape, in its order, from
// next: a function like trace.EventReader's Next, that fills an event, may reuse what
// it points to, and returns io.EOF at the end.
func New(next func(*event.Event) error, o *Options) *Stage {
	if o == nil {
		o = &Options{}
	}
	st := &Stage{
		next: next, arch: o.Arch, state: newState(), seen: map[uint32]struct{}{}, size: o.Window, most: o.MaxWindow,
		found: o.Found,
	}
	if st.size == 0 {
		st.size = DefaultWindow
	}
	if st.most == 0 {
		st.most = DefaultMaxWindow
	}
	st.size = max(st.size, 8)
	st.search.content.load = o.Content
	return st
}

// Next puts the next event, in the linear order, into ev, and reuses the memory that ev had.
// What ev points to is valid until the next call, except for strings, which stay valid. It
// returns io.EOF at the end. An error of the tape is returned after the events before it;
// Next may be called again after an error if the source continues.
func (st *Stage) Next(ev *event.Event) error {
	for {
		if st.emit(ev) {
			return nil
		}
		if err := st.pending; err != nil {
			if err != io.EOF {
				st.pending = nil
			}
			return err
		}
		if st.singleThreaded() {
			return st.passThrough(ev)
		}
		st.dropEmitted()
		st.fill(st.size)
		st.linearize()
		for sl := st.firstUnexplained(); sl != nil && st.grow(sl); sl = st.firstUnexplained() {
		}
	}
}

// Unexplained returns which parts of the last event's result are not explained.
func (st *Stage) Unexplained() Unexplained { return st.unexplained }

// singleThreaded reports whether there is only one thread, so that the tape's order is right.
func (st *Stage) singleThreaded() bool { return st.threads.Len() <= 1 && len(st.window) == 0 }

// passThrough returns an event straight from the tape.
func (st *Stage) passThrough(ev *event.Event) error {
	st.unexplained = 0
	if err := st.next(ev); err != nil {
		return err
	}
	if st.found != nil {
		st.found.add(ev.Seq, 0, partWhole, "")
	}
	st.follow(ev)
	if st.state.full() { // the window is empty, so no event has to be analyzed again
		st.state.forget()
	}
	switch st.passing.number = 0; {
	case !st.passing.classify(ev):
	case st.passing.class.moves():
		st.transfersPassed = true
	case st.passing.class == classList: // its order proves nothing without other threads
	case st.findFootprint(ev, &st.passing):
		st.apply(ev, &st.passing, believe)
		st.learn(ev, &st.passing, nil)
	}
	return nil
}

// follow keeps count of the threads.
func (st *Stage) follow(ev *event.Event) {
	st.state.locks.noteRelease(ev, st.threads.Follow(ev))
}

// fill reads events until the window has n, as long as calls can overlap.
func (st *Stage) fill(n int) {
	if st.transfersPassed {
		st.transfersPassed = false
		st.state.epoch++
		clear(st.state.byOpen)
	}
	again := false
	for len(st.window) < n && st.pending == nil && st.threads.Len() > 1 {
		sl := st.slot()
		if err := st.next(&sl.ev); err != nil {
			st.pool = append(st.pool, sl)
			st.pending = err
			break
		}
		sl.copyBuffers()
		st.follow(&sl.ev)
		st.n++
		sl.n, sl.pos = st.n, len(st.window)
		st.window = append(st.window, sl)
		st.boundExit(sl)
		again = st.analyze(sl) || again
	}
	if again {
		for _, sl := range st.window {
			if sl.tracked {
				st.reanalyze(sl)
			}
		}
	}
}

// reanalyze finds further accesses of an event, after what the events around it reported.
func (st *Stage) reanalyze(sl *slot) {
	if sl.footprint.class == classList {
		st.findFootprint(&sl.ev, &sl.footprint)
	}
	st.before = append(st.before[:0], sl.accesses...)
	st.state.findAccesses(sl)
	for _, t := range sl.accesses {
		if !slices.ContainsFunc(st.before, func(b access) bool { return b.cell == t.cell }) {
			st.state.race(sl, t)
		}
	}
}

// analyze finds a new event's footprint and what it races for. It reports whether that may
// change the accesses of events before it.
func (st *Stage) analyze(sl *slot) (again bool) {
	s := st.state
	if sl.tracked = sl.footprint.classify(&sl.ev) && st.findFootprint(&sl.ev, &sl.footprint); !sl.tracked {
		return false
	}
	sl.span = sl.footprint.spanOf(&sl.ev)
	again = s.noteShortening(sl) || s.more
	s.more = false
	if sl.footprint.class == classList {
		s.names[sl.footprint.names[0]].listed = sl.n
	}
	s.findAccesses(sl)
	for _, t := range sl.accesses {
		s.race(sl, t)
	}
	if sl.span.file >= 0 {
		s.collide(sl)
	}
	return again
}

// boundExit finds when a call was done at the latest. An event that the tape has before
// another was done before it, whenever it returned, unless it is marked as late.
func (st *Stage) boundExit(sl *slot) {
	sl.exit = max(sl.ev.Exit, sl.ev.Enter)
	if sl.ev.Flags&event.Late != 0 {
		return
	}
	for i := sl.pos - 1; i >= 0 && st.window[i].exit > sl.exit; i-- {
		st.window[i].exit = max(sl.exit, st.window[i].ev.Enter)
	}
}

// maxKept bounds the bytes of content that a slot keeps room for.
const maxKept = 64 << 10

func (st *Stage) slot() *slot {
	n := len(st.pool)
	if n == 0 {
		return &slot{found: unknown}
	}
	sl := st.pool[n-1]
	st.pool = st.pool[:n-1]
	sl.inline, sl.accesses, sl.data = sl.inline[:0], sl.accesses[:0], sl.data[:0]
	sl.emitted, sl.before, sl.found, sl.unexplained, sl.footprint.number = false, nil, unknown, 0, 0
	sl.racy, sl.loaded, sl.prev = false, false, nil
	if cap(sl.data) > maxKept {
		sl.data = nil
	}
	return sl
}

// copyBuffers copies the content that belongs to the tape's reader.
func (sl *slot) copyBuffers() {
	for i := range sl.ev.Bufs {
		b := &sl.ev.Bufs[i]
		if len(b.Inline) == 0 {
			continue
		}
		at := len(sl.inline)
		sl.inline = append(sl.inline, b.Inline...)
		b.Inline = sl.inline[at:len(sl.inline):len(sl.inline)]
	}
}

// emit exchanges ev with the next event that has its final place.
func (st *Stage) emit(ev *event.Event) bool {
	for st.done < st.ready {
		sl := st.window[st.done]
		if sl.emitted {
			st.done++
			continue
		}
		for sl.before != nil && !sl.before.emitted {
			sl = sl.before
		}
		if sl.of != nil {
			st.emitLookup(sl, ev)
			return true
		}
		if sl.found != unknown && !st.resolveLinkName(sl) {
			sl.unexplained |= UnexplainedResult
		}
		if sl.tracked {
			if sl.unexplained == 0 && !st.apply(&sl.ev, &sl.footprint, strict) {
				if st.grow(sl) {
					continue
				}
				st.apply(&sl.ev, &sl.footprint, believe)
			} else if sl.unexplained != 0 {
				st.apply(&sl.ev, &sl.footprint, tolerate)
			}
			st.learn(&sl.ev, &sl.footprint, sl.accesses)
		}
		sl.emitted = true
		st.unexplained = sl.unexplained
		if *ev, sl.ev = sl.ev, *ev; st.found != nil {
			st.note(ev, sl.found)
		}
		return true
	}
	return false
}

// note adds an event to the order that is kept. found is as in slot.
func (st *Stage) note(ev *event.Event, found int64) {
	p, name := partWhole, ""
	switch {
	case ev.Op == event.OpFtruncate && ev.Flags&event.Synthetic != 0:
		p = partRest
	case found != unknown && len(ev.Paths) > 0 && ev.Paths[0].Raw == ev.Paths[0].Abs: // see resolveLinkName
		p, name = partLink, ev.Paths[0].Raw
	}
	st.found.add(ev.Seq, st.unexplained, p, name)
}

// apply applies a call that has its final place to the state. It returns false if the
// recorded result contradicts the state.
func (st *Stage) apply(ev *event.Event, s *footprint, m mode) bool {
	st.state.mode = m
	return st.state.explain(ev, s)
}

// learn takes the size that was recorded with a call into the state, if no other call can
// have changed it between the call's effect and its return. accesses are those of the call.
func (st *Stage) learn(ev *event.Event, s *footprint, accesses []access) {
	observed := s.observedSize(ev)
	if observed < 0 {
		return
	}
	size := st.state.files[s.file].size
	c := &st.state.cells[size]
	if c.racing >= st.state.oldest && c.racing > 0 {
		return
	}
	if c.changed < st.state.oldest || slices.ContainsFunc(accesses, func(t access) bool { return t.cell == size }) {
		c.value = observed
	}
}

// linearize finds the places of the events in the window, and how many of them may be
// returned: not the last, which may still explain results of those before.
func (st *Stage) linearize() {
	s := st.state
	if st.ready = len(st.window); st.ready == 0 {
		return
	}
	if st.pending == nil && st.threads.Len() > 1 {
		st.ready -= st.size / 4
	}
	if s.full() {
		s.forget()
		for _, sl := range st.window {
			st.analyze(sl)
		}
	}
	resetOrder(st.window)
	s.oldest = st.window[0].n
	if st.incomplete = false; s.racing >= s.oldest {
		st.components()
	}
}

// firstUnexplained returns the first event that is not explained, nil if there is none.
func (st *Stage) firstUnexplained() *slot {
	if !st.incomplete {
		return nil
	}
	for _, sl := range st.window[:st.ready] {
		if sl.unexplained != 0 {
			return sl
		}
	}
	return nil
}

// grow reads more events into the window, for a call that may explain an unexplained
// result: one of a thread that has no later event in it. It reports whether it did.
func (st *Stage) grow(sl *slot) bool {
	if st.pending != nil || len(st.window) > st.most/2 || st.threads.Len() <= 1 {
		return false
	}
	clear(st.seen)
	for _, later := range st.window[sl.pos:] {
		st.seen[later.ev.TID] = struct{}{}
	}
	for tid := range st.threads.All() {
		if _, ok := st.seen[tid]; !ok {
			st.dropEmitted() // the state has their effects already
			st.fill(2 * len(st.window))
			st.linearize()
			return true
		}
	}
	return false
}

// dropEmitted removes the events that were returned.
func (st *Stage) dropEmitted() {
	kept := st.window[:0]
	for _, sl := range st.window {
		if sl.emitted {
			st.pool = append(st.pool, sl)
		} else {
			sl.pos = len(kept)
			if sl.before != nil && sl.before.emitted {
				sl.before = nil // its memory will be reused
			}
			kept = append(kept, sl)
		}
	}
	clear(st.window[len(kept):])
	st.window, st.done = kept, 0
	if len(kept) == 0 {
		st.state.oldest = st.n + 1
	}
	if most := 4 * st.size; len(st.pool) > most && len(kept) <= st.size {
		clear(st.pool[most:]) // from when the window had grown
		st.pool = st.pool[:most]
	}
}

// components groups the calls that race with each other and searches an order for each group.
func (st *Stage) components() {
	s := st.state
	for more := true; more; {
		more = false
		for _, sl := range st.window {
			more = sl.tracked && s.spread(sl) || more
		}
	}
	s.round++
	for _, sl := range st.window {
		if sl.tracked {
			s.join(sl)
		}
	}
	st.comps = st.comps[:0]
	for _, sl := range st.window {
		if !sl.tracked {
			continue
		}
		root := s.join(sl)
		if root < 0 {
			continue
		}
		c := &s.cells[root]
		if c.component < 0 {
			c.component = int32(len(st.comps))
			if len(st.comps) < cap(st.comps) {
				st.comps = st.comps[:len(st.comps)+1]
				st.comps[c.component].calls = st.comps[c.component].calls[:0]
			} else {
				st.comps = append(st.comps, component{})
			}
		}
		comp := &st.comps[c.component]
		comp.calls = append(comp.calls, sl)
	}
	for i := range st.comps {
		if calls := st.comps[i].calls; len(calls) > 1 {
			st.place(st.search.run(s, calls))
			st.incomplete = st.incomplete || st.search.incomplete
		}
	}
}

// component is calls that race with each other, and calls that depend on the outcome, in
// the tape's order.
type component struct{ calls []*slot }

// place leaves each call of an order where the tape has it, if that is before the next call
// of the order, and moves it just before that otherwise.
func (st *Stage) place(order []*slot) {
	next := order[len(order)-1]
	place := next.pos
	for i := len(order) - 2; i >= 0; i-- {
		sl := order[i]
		if sl.pos > place || sl.of != nil {
			next.before = sl
		} else {
			place = sl.pos
		}
		next = sl
	}
}
