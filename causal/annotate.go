// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/iotape/iotape/event"
)

// maxEvents bounds what is annotated: events are numbered in 32 bits here.
const maxEvents = 1<<32 - 2

// Annotate finds the annotations of a tape's events, which have to be all of it, in
// order. Its memory is about 45 bytes for an event, and a few times that for a
// dependency.
func Annotate(events iter.Seq2[*event.Event, error]) (*Annotations, *Summary, error) {
	return AnnotateWith(events, nil)
}

// AnnotateWith is Annotate with what experiments found beside; nil is nothing.
func AnnotateWith(events iter.Seq2[*event.Event, error], more *Evidence) (*Annotations, *Summary, error) {
	a := newAnnotator()
	for ev, err := range events {
		if err != nil {
			return nil, nil, fmt.Errorf("annotate: %w", err)
		}
		if ev.Seq != uint64(len(a.exit)) {
			return nil, nil, fmt.Errorf("annotate: event %d comes where %d should: the tape is damaged", ev.Seq,
				len(a.exit))
		}
		if len(a.exit) >= maxEvents {
			return nil, nil, fmt.Errorf("annotate: more than %d events", uint64(maxEvents))
		}
		a.add(ev)
	}
	if err := more.check(len(a.exit)); err != nil {
		return nil, nil, fmt.Errorf("annotate: %w", err)
	}
	notes, sum := a.finish(more)
	return notes, sum, nil
}

// annotator collects events.
type annotator struct {
	b       *Builder
	locks   *locks
	files   *files
	nodes   map[thread]*node
	parents map[thread]uint32 // the parent of a process, by its number
	gone    map[thread]int    // the event with which the last child of a process ended
	exit    []int64           // return times
	compute []int64           // ns before the event
	own     []int64           // ns in the event, if it is a storage call
	begin   int64             // of the first call; end is of the last
	end     int64
	wakes   []woken
	polls   []poll
	looks   []*pollLoop // that found something
	sleeps  []sleep
	// broadcasts are the calls that woke all who slept on a word.
	broadcasts []broadcast
	sum        Summary
}

// node is a thread that lives.
type node struct {
	line    int
	total   *NodeTotal
	lastEnd int64 // when it last returned, -1: never
	last    int   // event
	clock   cpuClock
	// measured says that its calls tell how long it waited for a processor. untold are the
	// events since the last that did, and their computing; guessed is the delay before them.
	measured     bool
	unattributed []timeAt
	guessed      int64
	cpu          int64     // ns; its clock at the last call
	lastWakeup   int64     // when it was last woken up outside of calls
	carry        int64     // ns in calls since that a replay does not make
	inCall       []*wakeup // that it got since its last call returned
	given        []*wakeup // that it gave, in a call that has not returned
	poll         int       // index into polls, of the last call, -1: none
	loop         *pollLoop // that it is about; nil: it does something else
	ended        bool
}

// wakeup is one wake-up: its giver is known when the call in which it was given returns.
type wakeup struct {
	event int // the Woken one
	at    int64
	giver int // event; -1: nobody in the tape, -2: not known yet
}

const (
	outside = -1
	pending = -2
)

// woken is an event that could not return before somebody woke its thread.
type woken struct {
	event int
	by    *wakeup
}

// poll is a call that waited until something could be read, and what was read then.
type poll struct {
	event, enter int64
	readers      []uint32
}

// sleep is a call that waited, for somebody or for a time.
type sleep struct {
	event     int
	enter, ns int64
	timed     bool // for a time
}

func newAnnotator() *annotator {
	a := &annotator{b: NewBuilder(), nodes: map[thread]*node{}, parents: map[thread]uint32{}, gone: map[thread]int{}}
	edge := a.b.edge
	a.locks, a.files = newLocks(edge), newFiles(edge)
	return a
}

// add takes the next event.
func (a *annotator) add(ev *event.Event) {
	i := len(a.exit)
	a.exit = append(a.exit, ev.Exit)
	a.compute, a.own = append(a.compute, 0), append(a.own, 0)
	a.b.Add(ev)
	if ev.Kind == event.LossMark {
		a.sum.Losses++
		return
	}
	n := a.node(ev, i)
	a.locks.see(i, ev)
	switch ev.Kind {
	case event.Forked:
		a.nodes[thread{ev.Host, ev.Child}] = &node{line: -1, lastEnd: ev.Exit, last: -1, poll: -1}
		if child := ev.Fork().PID; child != ev.PID {
			a.parents[thread{ev.Host, child}] = ev.PID
		}
	case event.Exited:
		if parent, known := a.parents[thread{ev.Host, ev.PID}]; known {
			a.gone[thread{ev.Host, parent}] = i
		}
		a.settle(n, i, ev.Exit, ev.Exit)
		n.ended = true
	case event.Woken:
		a.woken(n, i, ev)
	case event.Call:
		if ev.Op.IsUring() || ev.Op.IsAIO() {
			a.files.see(i, uint32(n.line), ev)
			break // it is under way beside the thread's calls
		}
		a.call(n, i, ev)
		if ev.IsNonLeaderExec() {
			a.nodes[thread{ev.Host, ev.PID}] = n
			delete(a.nodes, thread{ev.Host, ev.TID})
		}
	}
	n.last = i
}

// node returns the event's thread.
func (a *annotator) node(ev *event.Event, i int) *node {
	id := thread{ev.Host, ev.TID}
	n := a.nodes[id]
	if n == nil {
		n = &node{line: -1, lastEnd: -1, last: -1, poll: -1}
		a.nodes[id] = n
	}
	if n.line < 0 {
		if n.line = int(a.b.line[i]); n.lastEnd >= 0 {
			n.clock.start(0) // it was born in the tape
		}
		for len(a.sum.Nodes) <= n.line {
			a.sum.Nodes = append(a.sum.Nodes, &NodeTotal{})
		}
		n.total = a.sum.Nodes[n.line]
	}
	return n
}

// maxChain bounds the wake-ups that a call is said to have waited for.
const maxChain = 16

// woken notes a wake-up.
func (a *annotator) woken(n *node, i int, ev *event.Event) {
	a.sum.Woken++
	if ev.Wakeup().In == event.OpUnknown { // not in a call: it is let go on, or starts
		if n.last < 0 {
			n.lastEnd = max(n.lastEnd, ev.Exit)
		}
		n.lastWakeup = ev.Exit
		return
	}
	w := &wakeup{event: i, at: ev.Exit, giver: outside}
	n.inCall = append(n.inCall, w)
	giver := a.nodes[thread{ev.Host, ev.Child}]
	child, bereft := a.gone[thread{ev.Host, ev.PID}]
	switch {
	// Whoever traces a process passes its end on to its parent (SIGCHLD, ptrace(2)): so
	// does the recorder, which is not in the tape.
	case giver == nil && ev.Child != 0 && bereft && child > n.last:
		w.giver = child
	case ev.Child == 0 || giver == nil || giver.last < 0:
	case giver.ended:
		w.giver = giver.last
	default:
		w.giver = pending
		giver.given = append(giver.given, w)
		// Who was woken in a call and wakes another in the same one, passes it on.
		n.inCall = append(n.inCall, giver.inCall...)
	}
	if len(n.inCall) > maxChain {
		n.inCall = n.inCall[len(n.inCall)-maxChain:]
	}
}

// settle says of the wake-ups that a thread gave that they were in an event, or between
// that and the one before.
func (a *annotator) settle(n *node, i int, enter, exit int64) {
	kept := n.given[:0]
	for _, w := range n.given {
		switch {
		case w.at > exit:
			kept = append(kept, w)
		case w.at >= enter || n.last < 0:
			w.giver = i
		default:
			w.giver = n.last
		}
	}
	n.given = kept
}

// call takes the next call of a thread.
func (a *annotator) call(n *node, i int, ev *event.Event) {
	a.files.see(i, uint32(n.line), ev)
	if !ev.Spec().NoCall {
		a.settle(n, i, ev.Enter, ev.Exit)
	}
	if a.end == 0 {
		a.begin = ev.Enter
	}
	a.begin, a.end = min(a.begin, ev.Enter), max(a.end, ev.Exit)
	own := storage(ev)
	slept := a.account(n, i, ev, own)
	if own || slept {
		n.loop = nil
	} else {
		a.look(n, i, ev)
	}
	if on, all := broadcasts(ev); all {
		a.broadcasts = append(a.broadcasts, broadcast{i, on})
	}
	a.followPoll(n, i, ev, own, slept)
	if !ev.Spec().NoCall {
		n.inCall = n.inCall[:0:0]
	}
	n.lastEnd = max(n.lastEnd, ev.Exit)
}

// account says of the time since the thread's last call what it computed, what it was
// delayed, and what it spent in this call, which is a storage call if own is set. It reports
// whether the call slept.
func (a *annotator) account(n *node, i int, ev *event.Event, own bool) bool {
	var gap int64
	took := ev.Exit - ev.Enter
	if n.lastEnd >= 0 {
		gap = max(0, ev.Enter-n.lastEnd)
		took = ev.Exit - max(ev.Enter, n.lastEnd)
	}
	took = max(took, 0)
	delay := a.delayed(n, ev, i, gap)
	a.compute[i] = n.carry + gap - delay
	n.carry = 0
	n.total.Compute += a.compute[i]
	n.total.Delay += delay

	slept, until := a.sleptIn(n, ev, own)
	if own || slept == 0 {
		delay = delayWithin(ev, took)
		took -= delay
		n.total.Delay += delay
	}
	switch {
	case own:
		n.total.Storage += took
		a.own[i] = took
	case slept > 0:
		a.waited(n, i, ev, slept, until)
	default:
		n.carry = took
	}
	if slept == 0 && n.lastWakeup < max(ev.Enter, 1) { // nor waited for a page
		n.clock.ran(took)
	}
	return slept > 0
}

// followPoll notes a call that waited until something could be read, and the calls that
// then read it.
func (a *annotator) followPoll(n *node, i int, ev *event.Event, own, slept bool) {
	const maxReaders = 64
	switch class := ev.Spec().Class; {
	case isPoll(ev.Op):
		n.poll = -1
		if slept && ev.OK() && ev.Ret > 0 {
			n.poll = len(a.polls)
			a.polls = append(a.polls, poll{event: int64(i), enter: ev.Enter})
		}
	case n.poll >= 0 && !own && (class == event.Data || class == event.Socket):
		if p := &a.polls[n.poll]; len(p.readers) < maxReaders {
			p.readers = append(p.readers, uint32(i))
		}
	}
}

// sleptIn returns how long a call slept, until its last wake-up.
func (a *annotator) sleptIn(n *node, ev *event.Event, own bool) (ns, until int64) {
	for _, w := range n.inCall {
		if w.at >= ev.Enter && w.at <= ev.Exit {
			until = max(until, w.at)
		}
	}
	switch {
	case until > 0:
		return max(until-ev.Enter, 1), until
	case a.sum.Woken == 0 && (own || canSleep(ev)):
		took := ev.Exit - ev.Enter
		if delay := delayWithin(ev, took); took-delay >= blockedNS {
			return took - delay, ev.Exit - delay
		}
	}
	return 0, 0
}

// waited notes a call that slept and is not the storage system's matter.
func (a *annotator) waited(n *node, i int, ev *event.Event, slept, until int64) {
	n.total.Delay += ev.Exit - until
	if !canSleep(ev) {
		return
	}
	a.sleeps = append(a.sleeps, sleep{event: i, enter: ev.Enter, ns: slept, timed: timed(ev)})
	for _, w := range n.inCall {
		if w.giver != outside && w.at >= ev.Enter {
			a.wakes = append(a.wakes, woken{i, w})
		}
	}
}

// finish makes the annotations.
func (a *annotator) finish(more *Evidence) (*Annotations, *Summary) {
	b := a.b
	b.finish()
	links := slices.DeleteFunc(b.links, func(l link) bool { return l.why == Wake })
	for _, w := range a.wakes {
		if w.by.giver >= 0 && w.by.giver != w.event {
			links = append(links, link{uint32(w.event), uint32(w.by.giver), Wake})
		}
	}
	links = append(links, a.polled(links)...)
	links = more.of(links)
	sortLinks(links)
	for _, l := range links {
		a.sum.Found[l.why]++
	}
	var arrivals []waitFor
	if !more.alone() {
		a.looked(links)
		arrivals = a.arrivals()
	}
	sleeps := more.bound(a, a.slept(links, more.alone()))
	waits := more.into(append(a.earlier(links), arrivals...), &a.sum)
	slices.SortStableFunc(waits, func(a, b waitFor) int { return cmp.Compare(a.to, b.to) })
	waits = reduce(b.line, len(b.lines), waits)
	for i, n := range a.sum.Nodes {
		n.ThreadLifetime = b.lines[i]
	}
	a.sum.Events, a.sum.Waits = uint64(len(a.exit)), uint64(len(waits))
	a.sum.ElapsedNS = a.end - a.begin
	a.sum.ExplainedNS, a.sum.Path = explain(b.line, len(b.lines), a.compute, sleeps, waits, a.own)
	return newAnnotations(a.compute, sleeps, waits), &a.sum
}

func sortLinks(links []link) {
	slices.SortFunc(links, func(a, c link) int {
		return cmp.Or(cmp.Compare(a.to, c.to), cmp.Compare(a.from, c.from), cmp.Compare(a.why, c.why))
	})
}

// linksTo returns the links that lead to an event, of sorted ones.
func linksTo(links []link, to uint32) []link {
	from, _ := slices.BinarySearchFunc(links, to, func(l link, to uint32) int { return cmp.Compare(l.to, to) })
	end := from
	for end < len(links) && links[end].to == to {
		end++
	}
	return links[from:end]
}

// polled returns what the calls waited for that waited until something could be read:
// what made it so while they waited.
func (a *annotator) polled(links []link) (more []link) {
	for _, p := range a.polls {
		for _, r := range p.readers {
			for _, l := range linksTo(links, r) {
				if (l.why == Bytes || l.why == Connect) && a.exit[l.from] > p.enter {
					more = append(more, link{uint32(p.event), l.from, l.why})
				}
			}
		}
	}
	return more
}

// slept returns the calls that waited for a time, or for somebody who is not in the tape.
// What had been done when a call began is not what it waited for.
// With timed, only such count that waited for a time.
func (a *annotator) slept(links []link, timed bool) []timeAt {
	var out []timeAt
	for _, s := range a.sleeps {
		node := &a.sum.Nodes[a.b.line[s.event]]
		alone := true
		for _, l := range linksTo(links, uint32(s.event)) {
			alone = alone && a.exit[l.from] <= s.enter
		}
		if s.timed || alone && !timed {
			out = append(out, timeAt{uint32(s.event), s.ns})
			(*node).Sleep += s.ns
		} else {
			(*node).Sync += s.ns
		}
	}
	return out
}

// earlier makes of all links such that lead from an event with a smaller number. What
// returned later than the event that needed only its beginning is stood for by the event
// before it in its thread, and the computing between the two.
func (a *annotator) earlier(links []link) []waitFor {
	b := a.b
	before := make([]uint32, len(b.line)) // in the same thread, plus 1
	last := make([]uint32, len(b.lines))
	for i, line := range b.line {
		before[i], last[line] = last[line], uint32(i)+1
	}
	out := make([]waitFor, 0, len(links))
	for _, l := range links {
		w, known := waitFor{to: l.to, from: l.from}, b.line[l.to] != b.line[l.from]
		for known && w.from > w.to {
			w.lag += a.compute[w.from]
			known = before[w.from] > 0
			w.from = before[w.from] - 1
		}
		if known {
			out = append(out, w)
		}
	}
	return out
}
