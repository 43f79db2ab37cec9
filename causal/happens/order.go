// SPDX-License-Identifier: Apache-2.0

package happens

import (
	"errors"
	"fmt"
	"math"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Order is the order of the events of some tapes. Events have positions, from 0: those of
// the first tape in its order, then those of the second, and so on.
type Order struct {
	graph   *causal.Graph
	tapes   []*trace.Tape
	first   []int // position of the first event of each tape, and of the end
	hosts   []trace.Host
	machine []uint32 // of each host: the first one that is the same machine
	enter   []int64  // wall clock of the event's host, ns since 1970
	exit    []int64
	weight  []bool // it is an event of its own: it ticks the logical clock
	serial  []uint32
	clock   []uint32
	order   []uint32
	left    []uint32 // events in circles, and behind them
	index   index
	skew    []Skew
}

// maxEvents bounds the events of all tapes together.
const maxEvents = math.MaxUint32 - 1

// Load reads tapes and orders their events.
func Load(tapes []*trace.Tape) (*Order, error) { return order(tapes, causal.NewBuilder()) }

// LoadStreams is Load, and keeps the streams: where in them each call was.
func LoadStreams(tapes []*trace.Tape) (*Order, error) {
	b := causal.NewBuilder()
	b.KeepStreams()
	return order(tapes, b)
}

func order(tapes []*trace.Tape, b *causal.Builder) (*Order, error) {
	o := &Order{tapes: tapes, first: []int{0}}
	logs := newLogs(b)
	for _, t := range tapes {
		base := uint32(len(o.hosts))
		if err := o.addHosts(t); err != nil {
			return nil, err
		}
		for h := base; h < uint32(len(o.hosts)); h++ {
			b.Machine(h, o.Machine(h))
			b.Addresses(h, o.hosts[h].Addresses)
		}
		for ev, err := range t.Events() {
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name(), err)
			}
			if len(o.enter) >= maxEvents {
				return nil, errors.New("more than 4,294,967,294 events")
			}
			ev.Host += base
			o.add(ev, b, logs)
		}
		o.first = append(o.first, len(o.enter))
	}
	for i := range o.hosts {
		if o.hosts[i].Backend == logBackend {
			logs.finish(o)
			break
		}
	}
	b.Content(o.content())
	o.graph = b.Graph()
	o.number()
	o.findSkew()
	o.arrange()
	o.index.build(o)
	return o, nil
}

// content returns a function that reads the beginning of what an event moved.
func (o *Order) content() func(i uint32, n int) []byte {
	readers := make([]*trace.EventReader, len(o.tapes))
	var ev event.Event
	return func(i uint32, n int) []byte {
		tape, seq := o.Event(int(i))
		if readers[tape] == nil {
			readers[tape] = o.tapes[tape].NewEventReader()
		}
		if readers[tape].Seek(seq) != nil || readers[tape].Next(&ev) != nil {
			return nil // what is damaged is said where it is used
		}
		for k := range ev.Bufs {
			m := &ev.Bufs[k]
			if part, _ := event.SplitPart(int(m.Arg)); m.Kind != event.KindVec &&
				(m.Kind != event.KindBuf || part != event.PartWhole && part != event.PartData) || m.Omitted {
				continue
			}
			b, missing := o.tapes[tape].ContentRange(m, 0, n, nil)
			if missing > 0 {
				return nil
			}
			return b
		}
		return nil
	}
}

// logBackend is what recorded an imported event log.
const logBackend = "CatLog"

// addHosts takes the hosts of a tape. The same recording twice would send and receive
// everything twice.
func (o *Order) addHosts(t *trace.Tape) error {
	for _, k := range o.tapes {
		if k == t {
			break
		}
		if sum := t.Manifest().Files[trace.EventsName]; sum.BLAKE3 != "" &&
			k.Manifest().Files[trace.EventsName] == sum && t.Manifest().Counts.Events > 0 {
			return fmt.Errorf("%s: the same tape is there twice", t.Name())
		}
	}
	for _, h := range t.Manifest().Hosts {
		for i := range o.hosts {
			if k := &o.hosts[i]; k.Host == h.Host && k.BootID == h.BootID && k.ClockNS == h.ClockNS &&
				k.WallNS == h.WallNS && h.WallNS != 0 && h.BootID != "" {
				return fmt.Errorf("%s: the recording of host %s is there twice", t.Name(), h.Host)
			}
		}
		same := uint32(len(o.hosts))
		for i := range o.hosts {
			if k := &o.hosts[i]; h.BootID != "" && k.BootID == h.BootID && k.Host == h.Host {
				same = uint32(i)
				break
			}
		}
		o.hosts, o.machine = append(o.hosts, h), append(o.machine, same)
	}
	return nil
}

// Machine returns the first host that is the same machine as a host, which was recorded
// several times: one of the same name that had not been started anew.
func (o *Order) Machine(host uint32) uint32 {
	return o.machine[host]
}

// TakeStreams returns the streams that LoadStreams kept, once: the Order forgets them.
func (o *Order) TakeStreams() []causal.Stream {
	s := o.graph.Streams
	o.graph.Streams = nil
	return s
}

// Exit returns when an event ended, by the clock of its host, ns since 1970.
func (o *Order) Exit(i int) int64 { return o.exit[i] }

func (o *Order) add(ev *event.Event, b *causal.Builder, logs *logs) {
	i := len(o.enter)
	h := &o.hosts[ev.Host]
	o.enter, o.exit = append(o.enter, h.Wall(ev.Enter)), append(o.exit, h.Wall(ev.Exit))
	if h.Backend == logBackend {
		b.IsLog(ev.Host)
		o.weight = append(o.weight, logs.see(i, ev))
	} else {
		o.weight = append(o.weight, ev.Kind == event.Call || ev.Kind == event.NoteMark)
	}
	b.Add(ev)
}

// number gives each event its position in its thread.
func (o *Order) number() {
	o.serial = make([]uint32, len(o.enter))
	next := make([]uint32, len(o.graph.Lines))
	for i, line := range o.graph.Line {
		o.serial[i] = next[line]
		next[line]++
	}
}

// Len returns how many events there are.
func (o *Order) Len() int { return len(o.enter) }

// Edges returns how many edges there are between threads.
func (o *Order) Edges() int { return o.graph.Edges() }

// Lines returns the threads.
func (o *Order) Lines() []causal.ThreadLifetime { return o.graph.Lines }

// Line returns the thread of an event, as an index into Lines.
func (o *Order) Line(i int) int { return int(o.graph.Line[i]) }

// Hosts returns the hosts of all tapes, which the threads' Host counts.
func (o *Order) Hosts() []trace.Host { return o.hosts }

// Position returns the position of an event of a tape.
func (o *Order) Position(tape int, seq uint64) int { return o.first[tape] + int(seq) }

// Event returns which event of which tape is at a position.
func (o *Order) Event(i int) (tape int, seq uint64) {
	for tape+1 < len(o.first)-1 && o.first[tape+1] <= i {
		tape++
	}
	return tape, uint64(i - o.first[tape])
}

// Counts reports whether an event is one of the program's, and not one that only says
// what was there, or more of another.
func (o *Order) Counts(i int) bool { return o.weight[i] }

// Before returns the direct predecessors of an event in other threads, and why.
func (o *Order) Before(i int) (from []uint32, why []causal.Reason) { return o.graph.Before(i) }

// Wall returns when an event began, by the clock of its host, ns since 1970.
func (o *Order) Wall(i int) int64 { return o.enter[i] }

// Schedule returns all events in an order in which each comes after all that happened
// before it, and otherwise as near as can be to that of the clocks, put right by Skew.
// Events that happen before themselves, and what comes after those, stand at the end
// (Circles).
func (o *Order) Schedule() []uint32 { return o.order }

// Clock returns the logical clock of an event: the length of the longest chain of events
// before it.
func (o *Order) Clock(i int) uint32 { return o.clock[i] }
