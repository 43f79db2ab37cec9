package causal

import (
	"cmp"
	"slices"

	"iotape/event"
)

// Reason says why an event comes before another.
type Reason uint8

// The reasons.
const (
	Program Reason = iota // same thread
	Fork                  // made the thread
	Wait                  // ended before it was waited for
	Wake                  // the waker's last event
	Bytes                 // wrote what was read
)

func (r Reason) String() string {
	return [...]string{"program", "fork", "wait", "wake", "bytes"}[r]
}

// Edge leads from an event to one that comes after it.
type Edge struct {
	From int // index of the event before, in the order of Add
	Why  Reason
}

// Builder collects events. Its memory is a few words for each.
type Builder struct {
	before  [][]Edge
	last    map[thread]int
	born    map[thread]int      // the Forked event, until the thread's first
	ended   map[child]int       // last end of a thread of the process
	streams map[end]*stream     // by the ends that are written to and read from
	byName  map[channel]*stream // of connections
	all     []*stream
}

type thread struct {
	host, tid uint32
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
	return &Builder{last: map[thread]int{}, born: map[thread]int{}, ended: map[child]int{}, streams: map[end]*stream{}, byName: map[channel]*stream{}}
}

// Add takes the next event of a tape. It keeps nothing of it.
func (b *Builder) Add(ev *event.Event) {
	i := len(b.before)
	b.before = append(b.before, nil)
	t := thread{ev.Host, ev.TID}
	if ev.Kind == event.LossMark {
		for _, s := range b.all {
			s.broken = s.broken || s.from == ev.Host || s.to == ev.Host
		}
		return
	}
	if from, ok := b.born[t]; ok {
		delete(b.born, t)
		b.edge(i, from, Fork)
	} else if from, ok := b.last[t]; ok {
		b.edge(i, from, Program)
	}
	switch ev.Kind {
	case event.Forked:
		c := thread{ev.Host, ev.Child}
		b.born[c] = i
		delete(b.last, c) // of another thread that had the number
	case event.Exited:
		pid := ev.PID
		if ev.NSPID != 0 {
			pid = ev.NSPID
		}
		b.ended[child{ev.Host, ev.PPID, pid}] = i
	case event.Woken:
		if from, ok := b.last[thread{ev.Host, ev.Child}]; ok && ev.Child != 0 {
			b.edge(i, from, Wake)
		}
	case event.Call:
		b.call(i, ev)
	}
	b.last[t] = i
}

// call notes what a call made, waited for or moved.
func (b *Builder) call(i int, ev *event.Event) {
	switch ev.Op {
	case event.OpWait4:
		if from, ok := b.ended[child{ev.Host, ev.PID, uint32(ev.Ret)}]; ok && ev.Ret > 0 && ev.OK() {
			b.edge(i, from, Wait)
		}
		return
	case event.OpPipe, event.OpPipe2, event.OpSocketpair:
		b.pair(ev)
		return
	case event.OpConnect:
		b.connection(ev)
		return
	}
	b.move(i, ev)
}

func (b *Builder) edge(to, from int, why Reason) {
	b.before[to] = append(b.before[to], Edge{from, why})
}

// Before returns the direct predecessors of each event, in the order of Add; that in the
// same thread comes first. The Builder must not be used any more.
func (b *Builder) Before() [][]Edge {
	for _, s := range b.all {
		s.edges(b)
	}
	for _, list := range b.before {
		slices.SortStableFunc(list, func(a, c Edge) int { return cmp.Or(cmp.Compare(a.Why, c.Why), cmp.Compare(a.From, c.From)) })
	}
	return b.before
}
