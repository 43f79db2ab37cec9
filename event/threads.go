// SPDX-License-Identifier: Apache-2.0

package event

import "iter"

// Threads follows which threads are alive. What belongs to a process, as its locks of
// fcntl do, goes with the last of its threads, which need not be the first one. The zero
// value knows none.
type Threads struct {
	process map[threadID]uint32 // of each that is alive
	count   map[threadID]int    // of each process
	near    [64]threadID        // some that are alive, to be found without the maps
}

type threadID struct{ host, id uint32 }

// Follow takes the next event and reports whether a process ended with it.
func (t *Threads) Follow(ev *Event) (ended bool) {
	if t.process == nil {
		t.process, t.count = map[threadID]uint32{}, map[threadID]int{}
	}
	id := threadID{ev.Host, ev.TID}
	if near := t.slot(id); *near != id || len(t.process) == 0 {
		*near = id
		t.born(id, ev.PID)
	}
	switch ev.Kind {
	case Forked:
		t.born(threadID{ev.Host, ev.Child}, ev.Fork().PID)
	case Exited:
		return t.ends(id)
	case Call:
		if ev.IsNonLeaderExec() {
			t.ends(id)
			t.born(threadID{ev.Host, ev.PID}, ev.PID)
		}
	}
	return false
}

// Len is how many threads are alive.
func (t *Threads) Len() int { return len(t.process) }

// All yields the numbers of those that are alive.
func (t *Threads) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := range t.process {
			if !yield(id.id) {
				return
			}
		}
	}
}

func (t *Threads) slot(id threadID) *threadID { return &t.near[id.id%uint32(len(t.near))] }

func (t *Threads) born(id threadID, pid uint32) {
	if was, ok := t.process[id]; ok {
		if was == pid {
			return
		}
		t.ends(id) // the number was used again and the end of the first was lost
	}
	t.process[id] = pid
	t.count[threadID{id.host, pid}]++
}

func (t *Threads) ends(id threadID) (last bool) {
	if near := t.slot(id); *near == id {
		*near = threadID{}
	}
	pid, ok := t.process[id]
	if !ok {
		return false
	}
	delete(t.process, id)
	p := threadID{id.host, pid}
	if t.count[p]--; t.count[p] > 0 {
		return false
	}
	delete(t.count, p)
	return true
}
