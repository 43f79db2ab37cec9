package seal

import (
	"slices"

	"iotape/event"
)

// positions puts calls that moved one file position, or appended to one file, at
// the same time into the order in which the kernel did them.
//
// The kernel does such calls one after the other (f_pos_lock, or the inode's lock
// for O_APPEND), but a capture sees the position only when the call has returned,
// and by then others may have moved it on. So where a call is seen to have ended is
// where it did, or beyond; and of several that saw the same end, the one that began
// last is the likeliest to have been the last: the lock is fair, but a thread that
// gave it up may be slow to return. From the end backwards, that gives every call a
// range of its own.
type positions struct {
	ends map[positionKey]int64 // where the last call on each position ended
	// Of the batch at hand, kept for their memory.
	places  map[positionKey][]int
	soonest []int64
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
				p.settle(key, batch, places[:n])
			}
			last := &batch[places[n-1]].ev
			// Not the largest: a seek may have moved the position back.
			p.ends[key] = last.Offset + last.Ret
			places, done = places[n:], done+n
		}
	}
}

// keyOf returns the position that a call moved.
func keyOf(ev *event.Event) (positionKey, bool) {
	switch ev.Op {
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev:
	default:
		return positionKey{}, false
	}
	f := ev.FileArg(0)
	if f == nil || !ev.OK() || ev.Kind != event.Call || ev.Offset < 0 || ev.Ret <= 0 {
		return positionKey{}, false
	}
	k := positionKey{dev: f.Dev, ino: f.Ino}
	if f.Flags&fAppend == 0 || ev.Op == event.OpRead || ev.Op == event.OpReadv {
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
// order of the ranges that it gives to them.
func (p *positions) settle(key positionKey, batch []*item, places []int) {
	var left []*item
	var keys []uint64
	end, total := int64(0), int64(0)
	for _, at := range places {
		it := batch[at]
		left, keys = append(left, it), append(keys, it.key)
		end = max(end, it.ev.Offset+it.ev.Ret)
		total += it.ev.Ret
	}
	if base, known := p.ends[key]; end < total || known && end-total != base {
		return // a seek in between, or a call that was lost: what was seen stays
	}
	for n := len(places) - 1; n >= 0; n-- {
		i := last(left, end)
		it := left[i]
		left = slices.Delete(left, i, i+1)
		it.ev.FileArg(0).Pos = end
		end -= it.ev.Ret
		it.ev.Offset = end
		batch[places[n]], it.key = it, keys[n] // one order for all that follows
	}
}

// last returns the index of the call that ended at end: none of the others began
// after it had returned, and it was seen to end there or, failing that, beyond.
func last(calls []*item, end int64) int {
	began := int64(0)
	for _, it := range calls {
		began = max(began, it.ev.Enter)
	}
	best := -1
	for i, it := range calls {
		seen := it.ev.Offset + it.ev.Ret
		if it.ev.Exit < began || seen < end {
			continue
		}
		if best >= 0 {
			b := &calls[best].ev
			if bound := b.Offset + b.Ret; bound < seen || bound == seen && b.Enter > it.ev.Enter {
				continue
			}
		}
		best = i
	}
	if best < 0 {
		return len(calls) - 1 // clocks that disagree: the order of returns
	}
	return best
}
