// SPDX-License-Identifier: Apache-2.0

package happens

import (
	"cmp"
	"slices"

	"github.com/iotape/iotape/causal"
)

// index answers whether one event happened before another. An event that has
// predecessors in other threads has a vector clock; the others of its thread have the
// same until the next such event. Vector clocks are sparse, and there are as many as
// there is room for; where there are none, the edges are searched.
type index struct {
	joins [][]join // of each thread
	room  int      // for ticks
}

// join is an event that has predecessors in other threads.
type join struct {
	event uint32
	clock []tick // sorted by thread, without the event's own; nil if there was no room
}

// tick says that the events of a thread before a number are known.
type tick struct {
	line  uint32
	until uint32 // position in the thread, plus 1
}

// indexTicks is how much room there is for vector clocks: 512 MiB.
const indexTicks = 64 << 20

func (x *index) build(o *Order) {
	x.joins, x.room = make([][]join, len(o.graph.Lines)), indexTicks
	for _, i := range o.order[:len(o.order)-len(o.left)] {
		from, _ := o.graph.Before(int(i))
		line := o.graph.Line[i]
		if len(from) == 0 || o.graph.Lines[line] == (causal.ThreadLifetime{}) {
			continue
		}
		c := x.at(o, i)
		for _, f := range from {
			c = merge(c, x.at(o, f), tick{o.graph.Line[f], o.serial[f] + 1})
		}
		if x.room -= len(c); x.room < 0 {
			c = nil
		}
		x.joins[line] = append(x.joins[line], join{i, c})
	}
}

// upTo returns how many joins of an event's thread are not after it.
func (x *index) upTo(o *Order, i uint32) int {
	at, found := slices.BinarySearchFunc(x.joins[o.graph.Line[i]], o.serial[i],
		func(j join, serial uint32) int { return cmp.Compare(o.serial[j.event], serial) })
	if found {
		at++
	}
	return at
}

// at returns the vector clock of an event, without its own thread.
func (x *index) at(o *Order, i uint32) []tick {
	if n := x.upTo(o, i); n > 0 {
		return x.joins[o.graph.Line[i]][n-1].clock
	}
	return nil
}

// merge returns the later of two clocks, and one more tick.
func merge(a, b []tick, t tick) []tick {
	out := make([]tick, 0, len(a)+len(b)+1)
	for len(a)+len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].line < b[0].line:
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || b[0].line < a[0].line:
			out, b = append(out, b[0]), b[1:]
		default:
			out = append(out, tick{a[0].line, max(a[0].until, b[0].until)})
			a, b = a[1:], b[1:]
		}
	}
	at, found := slices.BinarySearchFunc(out, t.line,
		func(o tick, line uint32) int { return cmp.Compare(o.line, line) })
	if found {
		out[at].until = max(out[at].until, t.until)
		return out
	}
	return slices.Insert(out, at, t)
}

// HappenedBefore reports whether event a happened before event b. It takes time
// logarithmic in the number of events, unless the tapes have so many threads and edges
// that there was no room for all vector clocks. Of events in circles it knows only the
// order in their threads.
func (o *Order) HappenedBefore(a, b int) bool {
	if o.graph.Line[a] == o.graph.Line[b] {
		return o.graph.Lines[o.graph.Line[a]] != (causal.ThreadLifetime{}) && o.serial[a] < o.serial[b]
	}
	n := o.index.upTo(o, uint32(b))
	if n == 0 || o.clock[a] > o.clock[b] {
		return false
	}
	if c := o.index.joins[o.graph.Line[b]][n-1].clock; c != nil {
		at, found := slices.BinarySearchFunc(c, o.graph.Line[a],
			func(t tick, line uint32) int { return cmp.Compare(t.line, line) })
		return found && o.serial[a] < c[at].until
	}
	return o.search(uint32(a), uint32(b))
}

// search looks for a path from a to b, backwards.
func (o *Order) search(a, b uint32) bool {
	line := o.graph.Line[a]
	seen := map[uint32]uint32{} // how many joins of a thread were looked at
	work := []uint32{b}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if o.graph.Line[i] == line && o.serial[a] <= o.serial[i] {
			return true
		}
		l := o.graph.Line[i]
		upTo := o.index.upTo(o, i)
		for k := int(seen[l]); k < upTo; k++ {
			from, _ := o.graph.Before(int(o.index.joins[l][k].event))
			for _, f := range from {
				if o.clock[f] >= o.clock[a] {
					work = append(work, f)
				}
			}
		}
		seen[l] = max(seen[l], uint32(upTo))
	}
	return false
}
