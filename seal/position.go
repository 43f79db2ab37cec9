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
// and by then others may have moved it on. So where a call is seen to have ended
// is an upper bound of where it did: the order of returns, changed as little as
// those bounds ask for, gives every call its own range.
type positions struct {
	ends map[positionKey]int64 // where the last call on each position ended
}

// positionKey is a shared position: a file for appends, a process's descriptor
// otherwise.
type positionKey struct {
	dev, ino uint64
	pid      uint32
	fd       int32
}

const fAppend = 0o2000

func newPositions() positions { return positions{ends: map[positionKey]int64{}} }

// maxPositions bounds the table; dropping it costs only the first gap of a group.
const maxPositions = 1 << 16

// order corrects and reorders a batch that is in the order of returns.
func (p *positions) order(batch []*item) {
	if len(p.ends) > maxPositions {
		clear(p.ends)
	}
	for i, it := range batch {
		key, ok := keyOf(&it.ev)
		if !ok || it.placed {
			continue
		}
		near := batch[i:min(len(batch), i+overlapWindow)]
		group := overlapping(near, key)
		if len(group) > 1 {
			p.settle(key, group)
			rearrange(near, group)
		}
		for _, it := range group {
			it.placed = true
			// Not the largest: a seek may have moved the position back.
			p.ends[key] = it.ev.Offset + it.ev.Ret
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

// overlapWindow is how many events after one are looked at for an overlapping
// call. Each thread has one call in progress, so this covers many threads.
const overlapWindow = 256

// overlapping returns the first item and those after it that moved the same
// position, up to the last that was under way when an earlier one of them
// returned; the first alone if threads did not take turns there.
func overlapping(batch []*item, key positionKey) []*item {
	all, last, others := []*item{batch[0]}, 1, false
	end := batch[0].ev.Exit
	for _, it := range batch[1:] {
		if k, ok := keyOf(&it.ev); !ok || k != key {
			continue
		}
		all = append(all, it)
		if it.ev.Enter <= end {
			last, end = len(all), max(end, it.ev.Exit)
		}
		others = others || last > 1 && it.ev.TID != batch[0].ev.TID
	}
	if !others {
		last = 1
	}
	return all[:last]
}

// settle puts a group, which is in the order of returns, into the order of the
// ranges that it gives to its members.
func (p *positions) settle(key positionKey, group []*item) {
	base, known := p.ends[key]
	for _, it := range group {
		if !known || it.ev.Offset < base {
			base, known = it.ev.Offset, true
		}
	}
	for i := range group {
		// The latest place up to i at which the bounds of all from there on hold.
		for at := i; at > 0; at-- {
			if fits(group[:i+1], base) {
				break
			}
			group[at-1], group[at] = group[at], group[at-1]
		}
	}
	if !fits(group, base) {
		return // a seek in between, or a call that was lost: what was seen stays
	}
	for _, it := range group {
		it.ev.Offset = base
		base += it.ev.Ret
		it.ev.FileArg(0).Pos = base
	}
}

// fits reports whether calls in this order, from base on, end where they were seen
// to have ended, or before.
func fits(group []*item, base int64) bool {
	for _, it := range group {
		base += it.ev.Ret
		if base > it.ev.Offset+it.ev.Ret {
			return false
		}
	}
	return true
}

// rearrange puts the members of a group, which stay where the group stood, into
// their order.
func rearrange(batch, group []*item) {
	var places []int
	var keys []uint64
	for i, it := range batch {
		if slices.Contains(group, it) {
			places, keys = append(places, i), append(keys, it.key)
		}
	}
	for i, at := range places {
		batch[at] = group[i]
		group[i].key = keys[i] // one order for all that follows
	}
}
