// SPDX-License-Identifier: Apache-2.0

package happens

import (
	"container/heap"

	"github.com/iotape/iotape/causal"
)

// arrange makes the schedule and the logical clocks.
func (o *Order) arrange() {
	n := len(o.enter)
	before := make([]uint32, n) // in the same thread, plus 1
	missing := make([]uint32, n)
	afterAt := make([]uint32, n+1) // where an event's successors stand in after
	last := make([]uint32, len(o.graph.Lines))
	next := make([]uint32, n) // in the same thread, plus 1
	for i, line := range o.graph.Line {
		from, _ := o.graph.Before(i)
		missing[i] = uint32(len(from))
		for _, f := range from {
			afterAt[f+1]++
		}
		if o.graph.Lines[line] == (causal.ThreadLifetime{}) {
			continue
		}
		if before[i] = last[line]; before[i] > 0 {
			missing[i]++
			next[before[i]-1] = uint32(i) + 1
		}
		last[line] = uint32(i) + 1
	}
	for i := range n {
		afterAt[i+1] += afterAt[i]
	}
	after := make([]uint32, o.graph.Edges())
	fill := append([]uint32(nil), afterAt[:n]...)
	for i := range n {
		from, _ := o.graph.Before(i)
		for _, f := range from {
			after[fill[f]] = uint32(i)
			fill[f]++
		}
	}
	o.clock = make([]uint32, n)
	o.order = make([]uint32, 0, n)
	done := make([]bool, n)
	var ready []uint32
	push := func(i uint32) {
		if missing[i]--; missing[i] == 0 {
			ready = append(ready, i)
		}
	}
	visit := func(i uint32) {
		done[i] = true
		o.order = append(o.order, i)
		c := o.clock[i]
		if o.weight[i] {
			c++
		}
		if k := next[i]; k > 0 {
			o.clock[k-1] = max(o.clock[k-1], c)
			push(k - 1)
		}
		for _, k := range after[afterAt[i]:afterAt[i+1]] {
			o.clock[k] = max(o.clock[k], c)
			push(k)
		}
	}
	// Events are visited when it is their turn by the clocks, if they can be, and else
	// as soon as they can: what waited for them has had its turn.
	turn := make([]bool, n)
	for i := range o.byTime {
		turn[i] = true
		if missing[i] == 0 && !done[i] {
			visit(i)
		}
		for len(ready) > 0 {
			k := ready[len(ready)-1]
			ready = ready[:len(ready)-1]
			if turn[k] && !done[k] {
				visit(k)
			}
		}
	}
	for i := range o.byTime {
		if !done[i] {
			o.left = append(o.left, i)
			o.order = append(o.order, i)
		}
	}
}

// byTime goes through the events of all tapes: those of each in its order, the tapes
// side by side by their clocks.
func (o *Order) byTime(yield func(uint32) bool) {
	var q queue
	for t := range o.tapes {
		if o.first[t] < o.first[t+1] {
			q.heads = append(q.heads, head{o.exit[o.first[t]] - o.offset(o.first[t]), t, o.first[t]})
		}
	}
	heap.Init(&q)
	for len(q.heads) > 0 {
		h := &q.heads[0]
		if !yield(uint32(h.at)) {
			return
		}
		if h.at++; h.at == o.first[h.tape+1] {
			heap.Pop(&q)
			continue
		}
		h.key = o.exit[h.at] - o.offset(h.at)
		heap.Fix(&q, 0)
	}
}

// offset returns how much the clock of an event's host is ahead of the first host's.
func (o *Order) offset(i int) int64 {
	l := &o.graph.Lines[o.graph.Line[i]]
	if *l == (causal.ThreadLifetime{}) || len(o.skew) == 0 {
		return 0
	}
	return o.skew[l.Host].NS
}

// head is the next event of a tape.
type head struct {
	key      int64
	tape, at int
}

type queue struct{ heads []head }

func (q *queue) Len() int { return len(q.heads) }
func (q *queue) Less(i, j int) bool {
	a, b := &q.heads[i], &q.heads[j]
	return a.key < b.key || a.key == b.key && a.tape < b.tape
}
func (q *queue) Swap(i, j int) { q.heads[i], q.heads[j] = q.heads[j], q.heads[i] }
func (q *queue) Push(x any)    { q.heads = append(q.heads, x.(head)) }
func (q *queue) Pop() any {
	h := q.heads[len(q.heads)-1]
	q.heads = q.heads[:len(q.heads)-1]
	return h
}

// Circle returns the first circle of events that happen before each other, each after the
// next; nil if there is none: the tapes contradict themselves.
func (o *Order) Circle() []uint32 {
	if len(o.left) == 0 {
		return nil
	}
	stuck := map[uint32]bool{}
	for _, i := range o.left {
		stuck[i] = true
	}
	lastOf := map[uint32]uint32{} // in the same thread
	before := map[uint32]uint32{}
	for i := range o.enter {
		if k := uint32(i); stuck[k] {
			line := o.graph.Line[i]
			if b, ok := lastOf[line]; ok {
				before[k] = b
			}
			lastOf[line] = k
		}
	}
	// Each stuck event has a stuck one before it: somewhere that closes.
	seen := map[uint32]int{}
	var path []uint32
	for i := o.left[0]; ; {
		if at, ok := seen[i]; ok {
			return path[at:]
		}
		seen[i] = len(path)
		path = append(path, i)
		from, _ := o.graph.Before(int(i))
		found := false
		for _, f := range from {
			if stuck[f] {
				i, found = f, true
				break
			}
		}
		if !found {
			i = before[i]
		}
	}
}

// Circular returns how many events that count are in circles, or come after such.
func (o *Order) Circular() (n int) {
	for _, i := range o.left {
		if o.weight[i] {
			n++
		}
	}
	return n
}

// Faults returns what else cannot be all of the truth.
func (o *Order) Faults() *causal.Faults { return &o.graph.Faults }
