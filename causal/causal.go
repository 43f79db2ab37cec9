// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/iotape/iotape/event"
)

// Reason says why an event comes before another.
type Reason uint8

// The reasons.
const (
	Program  Reason = iota // same thread
	Fork                   // made the thread
	Wait                   // ended before it was waited for
	Wake                   // the waker's last event
	Bytes                  // wrote what was read
	Connect                // made the connection that was accepted
	Lock                   // gave up what was locked
	Name                   // made, used or removed the name
	Content                // wrote or read the same bytes of a file
	Barrier                // arrived at a barrier (barrier.go)
	Throttle               // was held, and the later one did not happen (package causal/throttle)
	numReasons
)

func (r Reason) String() string {
	return [...]string{"program", "fork", "wait", "wake", "bytes", "connect", "lock", "name", "content", "barrier",
		"throttle"}[r]
}

// Edge leads from an event to one that comes after it.
type Edge struct {
	From int // index of the event before, in the order of Add
	Why  Reason
}

// ThreadLifetime is a thread from its first event to its last. A number that is used again is
// another line.
type ThreadLifetime struct {
	Host     uint32
	PID, TID uint32
	Comm     string // of its last event that has one
}

// isZero reports whether it is no thread: its events have no order.
func (l *ThreadLifetime) isZero() bool { return *l == ThreadLifetime{} }

// Builder collects events. Its memory is a few words for each.
type Builder struct {
	links    []link
	line     []uint32 // of events
	lines    []ThreadLifetime
	nobody   int // the line of events that are no thread's, plus 1
	threads  map[thread]*threadState
	ended    map[child]int               // last end of a thread of the process
	streams  map[end]*stream             // by the ends that are written to and read from
	byName   map[endpoints][]*connection // in the order of Add
	names    map[hostName]*named
	fifos    map[fifo]*stream
	owned    map[uint32]*owned // by machine
	given    map[openFile]bool // connections that the recorder found open at the start
	content  func(event uint32, n int) []byte
	all      []*stream
	sockets  sockets
	logs     map[uint32]bool // hosts whose connections begin with their log
	faults   Faults
	keep     bool // the streams, for the Graph
	kept     []*stream
	machines map[uint32]uint32 // hosts that are another one again
}

// link is an edge between events of different threads.
type link struct {
	to, from uint32
	why      Reason
}

type thread struct {
	host, tid uint32
}

// threadState is a thread that lives, or is about to.
type threadState struct {
	line int // -1: it has not had an event
	last int // event
	born int // the Forked event, -1 if it was not seen or is used up
}

// child is a process as its parent numbers it.
type child struct {
	host, parent, pid uint32
}

// end is one direction of an open file.
type end struct {
	host  uint32
	open  event.OpenID
	write bool
}

// NewBuilder returns a Builder without events.
func NewBuilder() *Builder {
	return &Builder{
		threads: map[thread]*threadState{}, ended: map[child]int{},
		streams: map[end]*stream{}, byName: map[endpoints][]*connection{}, names: map[hostName]*named{},
		fifos: map[fifo]*stream{}, owned: map[uint32]*owned{}, given: map[openFile]bool{}, sockets: newSockets(),
		logs: map[uint32]bool{}, machines: map[uint32]uint32{},
	}
}

// IsLog says that a host's events come from a log which is taken for the whole: what
// connections it names had carried nothing before.
func (b *Builder) IsLog(host uint32) { b.logs[host] = true }

// Add takes the next event of a tape. It keeps nothing of it.
func (b *Builder) Add(ev *event.Event) {
	i := len(b.line)
	if ev.Kind == event.LossMark {
		b.line = append(b.line, b.none())
		for _, s := range b.all {
			s.broken = s.broken || s.from == ev.Host || s.to == ev.Host
		}
		return
	}
	id := thread{ev.Host, ev.TID}
	t := b.threads[id]
	if t == nil {
		t = &threadState{line: -1, last: -1, born: -1}
		b.threads[id] = t
	}
	if t.line < 0 {
		t.line = len(b.lines)
		b.lines = append(b.lines, ThreadLifetime{Host: ev.Host, PID: ev.PID, TID: ev.TID})
		if t.born >= 0 {
			b.edge(i, t.born, Fork)
		}
	}
	b.line = append(b.line, uint32(t.line))
	if l := &b.lines[t.line]; ev.Comm != "" && l.Comm != ev.Comm {
		l.Comm = ev.Comm
	}
	switch ev.Kind {
	case event.Forked:
		// Of another thread that had the number, nothing is left.
		b.threads[thread{ev.Host, ev.Child}] = &threadState{line: -1, last: -1, born: i}
	case event.Exited:
		pid := ev.PID
		if ev.NSPID != 0 {
			pid = ev.NSPID
		}
		b.ended[child{ev.Host, ev.PPID, pid}] = i
	case event.Woken:
		if w := b.threads[thread{ev.Host, ev.Child}]; w != nil && w.last >= 0 && ev.Child != 0 {
			b.edge(i, w.last, Wake)
		}
	case event.Inherited:
		b.inherits(ev)
	case event.Call:
		b.call(i, ev)
		if ev.IsNonLeaderExec() {
			b.threads[thread{ev.Host, ev.PID}] = t // the end of its own number may follow
		}
	}
	t.last = i
}

// none is the line of events that are no thread's.
func (b *Builder) none() uint32 {
	if b.nobody == 0 {
		b.lines = append(b.lines, ThreadLifetime{})
		b.nobody = len(b.lines)
	}
	return uint32(b.nobody - 1)
}

// call notes what a call made, waited for or moved.
func (b *Builder) call(i int, ev *event.Event) {
	switch ev.Effect() {
	case event.EffectWait:
		if from, ok := b.ended[child{ev.Host, ev.PID, waitedFor(ev)}]; ok && ev.OK() {
			b.edge(i, from, Wait)
		}
		return
	case event.EffectPair:
		b.pair(ev)
		return
	}
	named := false
	switch ev.Effect() {
	case event.EffectConnect:
		named = b.asks(i, ev)
	case event.EffectAccept:
		named = b.takes(i, ev)
	}
	if named {
		return
	}
	if ev.Spec().Class == event.Socket {
		b.socket(i, ev)
	} else if f := ev.FileArg(0); f != nil && event.FileType(f.Mode) == event.TypeSocket { // read and write do, too
		if s := b.sockets.known[openFile{ev.Host, f.Open}]; s != nil && s.kind == sockDgram {
			b.packet(i, ev, s)
		}
	}
	b.move(i, ev)
}

// waitedFor returns the process that a call found ended, 0 if there was none.
func waitedFor(ev *event.Event) uint32 {
	if ev.Op == event.OpWait4 {
		return uint32(max(ev.Ret, 0))
	}
	const pidAt = 12 // in siginfo_t, of SIGCHLD (sigaction(2))
	if info := ev.BufArg(2); info != nil && len(info.Inline) >= pidAt+4 {
		return binary.LittleEndian.Uint32(info.Inline[pidAt:])
	}
	return 0
}

// Edge says that an event comes after another, for a reason that the events themselves do
// not tell.
func (b *Builder) Edge(to, from int, why Reason) {
	if to != from && to < len(b.line) && from < len(b.line) {
		b.edge(to, from, why)
	}
}

func (b *Builder) edge(to, from int, why Reason) {
	b.links = append(b.links, link{uint32(to), uint32(from), why})
}

// finish adds the edges that only the whole trace shows, and sorts all.
func (b *Builder) finish() {
	b.pairSockets()
	b.pairNamed()
	for _, s := range b.all {
		s.logged = b.logs[s.from] || b.logs[s.to]
		if s.begun && !s.late || s.logged {
			s.edges(b)
		} else if b.keep {
			groups(s.writes)
			groups(s.reads)
		}
		if !b.keep {
			s.writes, s.reads = nil, nil
		} else if len(s.writes)+len(s.reads) > 0 {
			b.kept = append(b.kept, s)
		}
	}
	b.all = nil
	slices.SortFunc(b.links, func(a, c link) int {
		return cmp.Or(cmp.Compare(a.to, c.to), cmp.Compare(a.why, c.why), cmp.Compare(a.from, c.from))
	})
	b.links = slices.Compact(b.links)
}

// Before returns the direct predecessors of each event, in the order of Add; that in the
// same thread comes first. The Builder must not be used any more.
func (b *Builder) Before() [][]Edge {
	g := b.Graph()
	before, last := make([][]Edge, len(g.Line)), make([]int, len(g.Lines))
	for i, line := range g.Line {
		from, why := g.Before(i)
		if last[line] > 0 && !g.Lines[line].isZero() {
			before[i] = append(make([]Edge, 0, len(from)+1), Edge{last[line] - 1, Program})
		}
		for k := range from {
			before[i] = append(before[i], Edge{int(from[k]), why[k]})
		}
		last[line] = i + 1
	}
	return before
}
