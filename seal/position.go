// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"cmp"
	"slices"

	"github.com/iotape/iotape/event"
)

// positions puts calls that moved one file position, or appended to one file, at
// the same time into the order in which the kernel did them.
//
// The kernel does such calls one after the other (f_pos_lock, or the inode's lock
// for O_APPEND), but a capture sees the position only when a call begins and when it
// has returned. By then others may have moved it: so a call ended where it was seen to
// have ended, or beyond; and it began where it was seen to begin, or beyond, if that was
// seen. The calls of a group fill its range one after the other, none of them before one
// that had returned when it began. Of the orders that fit, the likeliest is taken: the
// lock is fair, but a thread that gave it up may be slow to return.
type positions struct {
	ends map[positionKey]int64 // where the last call on each position ended
	// Of the batch at hand, kept for their memory.
	places  map[positionKey][]int
	soonest []int64
	chain   chain
}

// positionKey is a shared position: a file for appends, a process's descriptor
// otherwise.
type positionKey struct {
	dev, ino uint64
	pid      uint32
	fd       int32
}

const fAppend = 0o2000

func newPositions() positions {
	return positions{ends: map[positionKey]int64{}, places: map[positionKey][]int{}}
}

// maxPositions bounds the table; dropping it costs only the first gap of a group.
const maxPositions = 1 << 16

// order corrects and reorders a batch that is in the order of returns.
func (p *positions) order(batch []*item) {
	moved := false
	if len(p.ends) > maxPositions {
		clear(p.ends)
	}
	clear(p.places)
	for i, it := range batch {
		if key, ok := keyOf(&it.ev); ok {
			p.places[key] = append(p.places[key], i)
		}
	}
	for key, places := range p.places {
		p.soonest = append(p.soonest[:0], make([]int64, len(places))...)
		for i := len(places) - 1; i >= 0; i-- {
			p.soonest[i] = batch[places[i]].ev.Enter
			if i+1 < len(places) {
				p.soonest[i] = min(p.soonest[i], p.soonest[i+1])
			}
		}
		for done := 0; len(places) > 0; {
			n := overlapping(batch, places[:min(len(places), maxGroup)], p.soonest[done:])
			if n > 1 {
				moved = p.settle(key, batch, places[:n]) || moved
			}
			last := &batch[places[n-1]].ev
			// Not the largest: a seek may have moved the position back.
			p.ends[key] = last.Offset + last.Ret
			places, done = places[n:], done+n
		}
	}
	if moved {
		slices.SortStableFunc(batch, func(a, b *item) int { return cmp.Compare(a.key, b.key) })
	}
}

// keyOf returns the position that a call moved.
func keyOf(ev *event.Event) (positionKey, bool) {
	f := ev.FileArg(0)
	if !ev.AtPosition() || f == nil || !ev.OK() || ev.Kind != event.Call || ev.Offset < 0 || ev.Ret <= 0 {
		return positionKey{}, false
	}
	k := positionKey{dev: f.Dev, ino: f.Ino}
	if f.Flags&fAppend == 0 || ev.Effect() == event.EffectRead {
		k.pid, k.fd = ev.PID, f.FD
	}
	return k, true
}

// maxGroup bounds the calls that are put into order together.
const maxGroup = 1024

// overlapping returns how many of the calls at places, from the first on, belong
// together: up to the last that was under way when an earlier one of them returned;
// 1 if threads did not take turns there.
//
// soonest is, for each place, when the first of it and those after it began.
func overlapping(batch []*item, places []int, soonest []int64) int {
	first := &batch[places[0]].ev
	n, end, others := 1, first.Exit, false
	for i, at := range places[1:] {
		ev := &batch[at].ev
		if soonest[i+1] > end {
			break
		}
		n, end = i+2, max(end, ev.Exit)
		others = others || ev.TID != first.TID
	}
	if !others {
		return 1
	}
	return n
}

// settle puts the calls at places, which are in the order of returns, into the
// order of the ranges that it gives to them, and reports whether it did.
//
// Each gets a time between its beginning and its return: the last that lets it come
// before those behind it. What its thread did before and after stays so.
func (p *positions) settle(key positionKey, batch []*item, places []int) bool {
	c := &p.chain
	c.begin(batch, places)
	if c.end < c.total {
		return false
	}
	if base, known := p.ends[key]; known {
		if end := base + c.total; end != c.end && (!c.open || end > c.end) {
			return false // a seek in between, or a call that was lost: what was seen stays
		}
		c.end = base + c.total
	}
	if !c.solve(c.end) {
		return false
	}
	end, soonest := c.end, c.order[0].key
	for n, it := range c.order { // from the last on
		at := places[len(places)-1-n]
		batch[at] = it
		soonest = min(soonest, it.key)
		it.key = soonest
		it.ev.FileArg(0).Pos = end
		end -= it.ev.Ret
		it.ev.Offset = end
	}
	return true
}

// chain looks for an order of calls, each of which begins where the one before it ended.
type chain struct {
	left, order []*item // order: found so far, from the last on
	end, total  int64
	open        bool // end may lie before where the position was seen
	tries       int
}

func (c *chain) begin(batch []*item, places []int) {
	*c = chain{left: c.left[:0], order: c.order[:0], tries: 16 * maxGroup}
	for _, at := range places {
		it := batch[at]
		c.left = append(c.left, it)
		_, hi := it.ended()
		c.end = max(c.end, hi)
		c.open = c.open || it.past > 1
		c.total += it.ev.Ret
	}
}

// ended returns the range of positions in which the call may have ended.
func (it *item) ended() (lo, hi int64) {
	end := it.ev.Offset + it.ev.Ret
	if it.past == 0 {
		return 0, end
	}
	return end, end + int64(it.past-1)
}

// solve finds the order of the calls left, the last of which ended at end.
func (c *chain) solve(end int64) bool {
	if len(c.left) == 0 {
		return true
	}
	var buf [8]*item
	for _, it := range c.candidates(buf[:0], end) {
		if c.tries--; c.tries < 0 {
			return false
		}
		i := slices.Index(c.left, it)
		c.left = slices.Delete(c.left, i, i+1)
		c.order = append(c.order, it)
		if c.solve(end - it.ev.Ret) {
			return true
		}
		c.order = c.order[:len(c.order)-1]
		c.left = slices.Insert(c.left, i, it)
	}
	return false
}

// candidates returns the calls that may have been the last of those left, the likeliest
// first: the one that fits nowhere before, that returned when the position was there, or the
// soonest after that, that saw it begin last. What a call saw when it began is worth less:
// a thread that lost the processor before it had the lock found others done by then, without
// having waited for them.
func (c *chain) candidates(list []*item, end int64) []*item {
	began := int64(0)
	for _, it := range c.left {
		began = max(began, it.ev.Enter)
	}
	var only *item
	for _, it := range c.left {
		lo, hi := it.ended()
		if lo > end {
			return nil // where does that one belong?
		}
		if it.ev.Exit >= began && end <= hi {
			list = append(list, it)
			if lo == end {
				only = it
			}
		}
	}
	if only != nil {
		return append(list[:0], only)
	}
	slices.SortStableFunc(list, func(a, b *item) int {
		alo, ahi := a.ended()
		blo, bhi := b.ended()
		return cmp.Or(cmp.Compare(ahi, bhi), -cmp.Compare(alo, blo), -cmp.Compare(a.ev.Enter, b.ev.Enter))
	})
	return list
}
