package settle

import (
	"io"
	"slices"

	"github.com/iotape/iotape/event"
)

// Doubt says what of an event's result no order of the calls explains, as far as
// the search went: a replay in the settled order may get another.
type Doubt uint8

// The parts of a result.
const (
	DoubtResult  Doubt = 1 << iota // the return value or error
	DoubtSize                      // the size that stat told
	DoubtContent                   // the bytes that were read, or where they were written
	DoubtMode                      // the permissions that stat told
	DoubtLinks                     // the number of names that stat told
)

// Options change how a Stage works; nil is the default.
type Options struct {
	Arch event.Arch // of the recording: structures differ
	// Window is how many events are looked at together, at least 8, and MaxWindow how
	// many are if fewer leave something unexplained; 0 is DefaultWindow and
	// DefaultMaxWindow.
	Window, MaxWindow int
	// Content appends what a buffer of an event holds, as trace.Tape's Content does. Nil:
	// only what the event itself has of content is looked at.
	Content func(b *event.Buf, dst []byte) ([]byte, error)
}

// Defaults of Options.
const (
	DefaultWindow    = 2048
	DefaultMaxWindow = 65536
)

// Stage puts the events of a tape into an order that explains their results. See the
// package's page.
type Stage struct {
	next func(*event.Event) error
	arch event.Arch

	state *state
	marks bool // the capture tells whether an open made its file

	threads event.Threads
	seen    map[uint32]struct{} // threads seen since something
	passed  bool                // calls that move bytes passed without being followed
	pending error               // what next returned; events before it are still to be given

	window  []*slot // of the tape, in its order; from done on not yet given
	done    int
	settled int     // events up to here may be given
	size    int     // of the window
	most    int     // of a window that leaves something unexplained
	one     subject // of the event that passes
	pool    []*slot
	doubt   Doubt
	// doubtful says that something in the window is not explained.
	doubtful bool

	n      uint64 // events that were in the window
	comps  []component
	before []touch
	search search
}

// slot is an event in the window.
type slot struct {
	ev     event.Event
	inline []byte // what the event's small content is kept in
	n      uint64 // number of the event, from 1
	exit   int64  // return; before it if the tape says that the call was done before another
	pos    int    // in the window
	given  bool

	subject  subject
	touching bool
	touches  []touch
	span     span
	told     int64 // size of its file when it returned, -1 if it does not say
	later    bool  // which may be another than its effect left (see withTold)
	look     bool  // no call, but what one told (see withTold)
	racy     bool  // it raced for content
	data     []byte
	loaded   bool  // data is its content, empty if that is not known
	prev     *slot // the call on the file's content before it, if that is number prevN still
	prevN    uint64
	before   *slot // event to be given before this one
	of       *slot // of a lookup that has a place of its own: its call (see steps.go)
	found    int64 // of a link: what its old name stood for when it was looked up; unknown: as it does
	doubt    Doubt
	taken    bool // in the search: it has its place
}

// New returns a stage that takes the events of a tape, in its order, from
// next: a function like trace.EventReader's Next, that fills an event, may reuse what
// it points to, and returns io.EOF at the end.
func New(next func(*event.Event) error, o *Options) *Stage {
	if o == nil {
		o = &Options{}
	}
	st := &Stage{next: next, arch: o.Arch, state: newState(), seen: map[uint32]struct{}{}, size: o.Window, most: o.MaxWindow}
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

// Next puts the next event, in the settled order, into ev, whose memory it takes in
// exchange. What ev points to is valid until the next call, except for strings, which
// stay. It returns io.EOF at the end. An error of the tape is returned when the events
// before it have been; Next may go on behind it if the source can.
func (st *Stage) Next(ev *event.Event) error {
	for {
		if st.give(ev) {
			return nil
		}
		if err := st.pending; err != nil {
			if err != io.EOF {
				st.pending = nil
			}
			return err
		}
		if st.lonely() {
			return st.pass(ev)
		}
		st.drop()
		st.fill(st.size)
		st.settle()
		for sl := st.wanting(); sl != nil && st.grow(sl); sl = st.wanting() {
		}
	}
}

// Doubt returns what of the last event's result is not explained.
func (st *Stage) Doubt() Doubt { return st.doubt }

// lonely reports whether there is only one thread, so that the tape's order is right.
func (st *Stage) lonely() bool { return st.threads.Len() <= 1 && len(st.window) == 0 }

// pass gives an event straight from the tape.
func (st *Stage) pass(ev *event.Event) error {
	st.doubt = 0
	if err := st.next(ev); err != nil {
		return err
	}
	st.follow(ev)
	if st.state.full() { // nothing is in the window that would have to be looked at again
		st.state.forget()
	}
	switch st.one.number = 0; {
	case !st.one.about(ev):
	case st.one.class.moves():
		st.passed = true
	case st.one.class == classList: // which would teach little
	case st.find(ev, &st.one):
		st.do(ev, &st.one, believe)
		st.learn(ev, &st.one, nil)
	}
	return nil
}

// follow keeps count of the threads.
func (st *Stage) follow(ev *event.Event) {
	st.state.locks.leaves(ev, st.threads.Follow(ev))
}

// fill reads events until the window has n, as long as calls can overlap.
func (st *Stage) fill(n int) {
	if st.passed {
		st.passed = false
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
		sl.own()
		st.follow(&sl.ev)
		st.n++
		sl.n, sl.pos = st.n, len(st.window)
		st.window = append(st.window, sl)
		st.time(sl)
		again = st.look(sl) || again
	}
	if again {
		for _, sl := range st.window {
			if sl.touching {
				st.lookAgain(sl)
			}
		}
	}
}

// lookAgain finds what an event touches as well, after what others before and behind it
// have told.
func (st *Stage) lookAgain(sl *slot) {
	if sl.subject.class == classList {
		st.find(&sl.ev, &sl.subject)
	}
	st.before = append(st.before[:0], sl.touches...)
	st.state.touches(sl)
	for _, t := range sl.touches {
		if !slices.ContainsFunc(st.before, func(b touch) bool { return b.cell == t.cell }) {
			st.state.race(sl, t)
		}
	}
}

// look finds out what a new event is about and what it races for. It reports whether
// that may change what others before it touch.
func (st *Stage) look(sl *slot) (again bool) {
	s := st.state
	if sl.touching = sl.subject.about(&sl.ev) && st.find(&sl.ev, &sl.subject); !sl.touching {
		return false
	}
	sl.span = sl.subject.spanOf(&sl.ev)
	again = s.cuts(sl) || s.more
	s.more = false
	if sl.subject.class == classList {
		s.names[sl.subject.names[0]].listed = sl.n
	}
	s.touches(sl)
	for _, t := range sl.touches {
		s.race(sl, t)
	}
	if sl.span.file >= 0 {
		s.collide(sl)
	}
	return again
}

// time finds when a call was done at the latest. What the tape has before another was
// done before it, whenever it returned; but not what came too late for its place.
func (st *Stage) time(sl *slot) {
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
	sl.inline, sl.touches, sl.data = sl.inline[:0], sl.touches[:0], sl.data[:0]
	sl.given, sl.before, sl.found, sl.doubt, sl.subject.number = false, nil, unknown, 0, 0
	sl.racy, sl.loaded, sl.prev = false, false, nil
	if cap(sl.data) > maxKept {
		sl.data = nil
	}
	return sl
}

// own copies what the tape only lends.
func (sl *slot) own() {
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

// give exchanges ev with the next event that has its place.
func (st *Stage) give(ev *event.Event) bool {
	for st.done < st.settled {
		sl := st.window[st.done]
		if sl.given {
			st.done++
			continue
		}
		for sl.before != nil && !sl.before.given {
			sl = sl.before
		}
		if sl.of != nil {
			st.giveLookup(sl, ev)
			return true
		}
		if sl.found != unknown && !st.renamed(sl) {
			sl.doubt |= DoubtResult
		}
		if sl.touching {
			if sl.doubt == 0 && !st.do(&sl.ev, &sl.subject, strict) {
				if st.grow(sl) {
					continue
				}
				st.do(&sl.ev, &sl.subject, believe)
			} else if sl.doubt != 0 {
				st.do(&sl.ev, &sl.subject, overlook)
			}
			st.learn(&sl.ev, &sl.subject, sl.touches)
		}
		sl.given = true
		st.doubt = sl.doubt
		*ev, sl.ev = sl.ev, *ev
		return true
	}
	return false
}

// do does a call that has its place on the state. It returns false if the result is another
// than it should be.
func (st *Stage) do(ev *event.Event, s *subject, m mode) bool {
	st.state.mode = m
	return st.state.explain(ev, s, st.marks)
}

// learn takes the size that the kernel told with a call, if no other can have changed it
// between the call's effect and its return. touches are the cells that the call concerns.
func (st *Stage) learn(ev *event.Event, s *subject, touches []touch) {
	told := s.told(ev)
	if told < 0 {
		return
	}
	size := st.state.files[s.file].size
	c := &st.state.cells[size]
	if c.racing >= st.state.oldest && c.racing > 0 {
		return
	}
	if c.changed < st.state.oldest || slices.ContainsFunc(touches, func(t touch) bool { return t.cell == size }) {
		c.value = told
	}
}

// settle finds the places of the events in the window, and how many of them may be
// given: not the last, which are there to be seen by those before.
func (st *Stage) settle() {
	s := st.state
	if st.settled = len(st.window); st.settled == 0 {
		return
	}
	if st.pending == nil && st.threads.Len() > 1 {
		st.settled -= st.size / 4
	}
	if s.full() {
		s.forget()
		for _, sl := range st.window {
			st.look(sl)
		}
	}
	unsettle(st.window)
	s.oldest = st.window[0].n
	if st.doubtful = false; s.racing >= s.oldest {
		st.components()
	}
}

// wanting returns the first event of which something is unexplained, nil if there is none.
func (st *Stage) wanting() *slot {
	if !st.doubtful {
		return nil
	}
	for _, sl := range st.window[:st.settled] {
		if sl.doubt != 0 {
			return sl
		}
	}
	return nil
}

// grow takes more events into the window, for a call that may explain what is not
// explained: one of a thread that has not been seen since. It reports whether it did.
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
			st.drop() // whose events are not there any more, and the state has what they did
			st.fill(2 * len(st.window))
			st.settle()
			return true
		}
	}
	return false
}

// drop forgets the events that were given.
func (st *Stage) drop() {
	kept := st.window[:0]
	for _, sl := range st.window {
		if sl.given {
			st.pool = append(st.pool, sl)
		} else {
			sl.pos = len(kept)
			if sl.before != nil && sl.before.given {
				sl.before = nil // whose memory will be another's
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

// components puts the calls that race with each other together and settles each group.
func (st *Stage) components() {
	s := st.state
	for more := true; more; {
		more = false
		for _, sl := range st.window {
			more = sl.touching && s.spread(sl) || more
		}
	}
	s.round++
	for _, sl := range st.window {
		if sl.touching {
			s.join(sl)
		}
	}
	st.comps = st.comps[:0]
	for _, sl := range st.window {
		if !sl.touching {
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
			st.place(st.search.run(s, calls, st.marks))
			st.doubtful = st.doubtful || st.search.doubtful
		}
	}
}

// component is calls that race with each other, and those that see the outcome, in the
// tape's order.
type component struct{ calls []*slot }

// place lets each call of an order come where the tape has it, or else just before the
// next one of the order.
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
