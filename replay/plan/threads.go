// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/order"
)

// threads are the threads of the recording, each with a slot.
type threads struct {
	byTID  map[uint32]*thread
	free   map[int][]uint32 // slots of threads that have ended, the first that did first, by team member
	slots  uint32
	single bool // all have one slot
}

// thread is a thread of the recording.
type thread struct {
	slot uint32
	// origin is what its first task waits for: the last task of its maker or, where that has
	// none yet, the maker's origin.
	origin   order.Ref
	begun    bool
	exit     int64 // ns; of its last event
	cpu      int64 // ns; at the entry of its last event
	computed int64 // ns of computing since its last task
	// measured says that its events have the time that it waited for a processor.
	measured bool
}

func newThreads(single bool) threads {
	return threads{byTID: map[uint32]*thread{}, free: map[int][]uint32{}, single: single}
}

// get returns the state of a thread, whose calls a member of the team makes.
func (s *threads) get(tid uint32, member int) *thread {
	if th := s.byTID[tid]; th != nil {
		return th
	}
	th := &thread{slot: s.slots}
	switch free := s.free[member]; {
	case len(free) > 0:
		th.slot, s.free[member] = free[0], free[1:]
	case s.single && s.slots > 0:
		th.slot = 0
	default:
		s.slots++
	}
	s.byTID[tid] = th
	return th
}

// add returns the state of a new thread. Its number may have been another's.
func (s *threads) add(tid uint32, member int) *thread {
	delete(s.byTID, tid)
	return s.get(tid, member)
}

// remove ends a thread.
func (s *threads) remove(tid uint32, member int) {
	if th := s.byTID[tid]; th != nil {
		s.free[member] = append(s.free[member], th.slot)
		delete(s.byTID, tid)
	}
}

// rename gives a thread that executes a program the number of its process's first one, which
// has ended.
func (s *threads) rename(tid, pid uint32, member int) {
	th := s.byTID[tid]
	if first := s.byTID[pid]; first != nil {
		s.free[member] = append(s.free[member], first.slot)
	}
	delete(s.byTID, tid)
	s.byTID[pid] = th
}

// maxTickNS is how far a thread's CPU clock may be behind (CONFIG_HZ=100).
const maxTickNS = 10_000_000

// compute notes how long a thread computed before an event: for the time that went by, less
// that in which it waited for a processor. Its CPU clock bounds that, as it may have slept
// between its calls. Where delays are not known, it is the CPU time that it used, and at
// most the time that went by.
func (th *thread) compute(ev *event.Event) {
	gap, used := max(ev.Enter-th.exit, 0), ev.CPU-th.cpu
	switch {
	case th.exit == 0:
	case ev.TellsDelays():
		th.measured = true
		// The delay may be from before an access to a mapped file, which says nothing of it.
		th.computed = max(th.computed+min(gap-int64(ev.DelayBefore), used+maxTickNS), 0)
	case th.measured:
		th.computed += max(min(gap, used+maxTickNS), 0)
	default:
		th.computed += max(min(used, gap), 0)
	}
	th.exit, th.cpu = ev.Exit, ev.CPU
}
