// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"encoding/binary"
	"slices"
	"syscall"

	"github.com/iotape/iotape/event"
)

// A lock is what a call asks of a file: to lock, or give back, a range of it.
type lock struct {
	what     lockKind
	owner    uint64 // an open file, or a process (ofProcess)
	pid      uint32
	from, to int64 // to excluded
}

type lockKind uint8

const (
	lockShared lockKind = iota
	lockExclusive
	lockBack  // is given back
	lockClose // a descriptor is closed: the process's locks go, and those of the open file if it is the last one
)

// ofProcess marks an owner that is a process.
const ofProcess = 1 << 63

// hold is a lock that an owner has. since is when it was granted at the latest.
type hold struct {
	owner     uint64
	from, to  int64
	since     int64
	pid       uint32
	exclusive bool
	perhaps   bool // a descriptor was closed since, which may have been the last
}

// lockTable numbers sets of holds, which are the values of a file's two cells of locks:
// those of flock, and those on ranges, which know nothing of each other. The set 0 is
// empty.
type lockTable struct {
	sets  [][]hold
	known map[string]int64
	// released is when a process ended, or did something that closes descriptors which it does
	// not name: the last times. Its locks may be gone since.
	released map[uint32][]int64
	key      []byte
	used     bool // a call has locked a file
}

func (t *lockTable) forget() {
	t.sets, t.known, t.released = append(t.sets[:0], nil), map[string]int64{"": 0}, map[uint32][]int64{}
	t.used = false
}

// set returns the number of a set of holds.
func (t *lockTable) set(holds []hold) int64 {
	slices.SortFunc(holds, func(a, b hold) int {
		if a.owner != b.owner {
			if a.owner < b.owner {
				return -1
			}
			return 1
		}
		return int(min(max(a.from-b.from, -1), 1))
	})
	t.key = t.key[:0]
	for _, h := range holds {
		flags := byte(0)
		if h.exclusive {
			flags |= 1
		}
		if h.perhaps {
			flags |= 2
		}
		le := binary.LittleEndian
		for _, v := range [...]uint64{h.owner, uint64(h.from), uint64(h.to), uint64(h.since), uint64(h.pid)} {
			t.key = le.AppendUint64(t.key, v)
		}
		t.key = append(t.key, flags)
	}
	n, ok := t.known[string(t.key)]
	if !ok {
		n = int64(len(t.sets))
		t.sets = append(t.sets, slices.Clone(holds))
		t.known[string(t.key)] = n
	}
	return n
}

// fcntl commands and the types of locks (asm-generic/fcntl.h).
const (
	fSetLk, fSetLkw       = 6, 7
	fOFDSetLk, fOFDSetLkw = 37, 38
	rangeRead             = 0
	rangeWrite            = 1
	lockSH, lockEX        = 1, 2 // of flock
	lockUN                = 8
)

// findLock finds what a call does to the locks of a file.
func (st *Stage) findLock(ev *event.Event, s *footprint) bool {
	f := ev.FileArg(0)
	if f == nil || ev.Op == event.OpClose && !st.state.locks.used {
		return false
	}
	if s.file = st.state.fileOfOpen(f); s.file < 0 {
		return false
	}
	file := &st.state.files[s.file]
	s.lock = lock{owner: uint64(f.Open), pid: ev.PID, to: endless}
	cell := &file.flocks
	switch ev.Op {
	case event.OpClose:
		s.lock.what = lockClose
		s.attr, s.ranges = file.flocks, file.ranges
		return ev.OK() && (s.attr >= 0 || s.ranges >= 0)
	case event.OpFlock:
		switch ev.Args[1] & (lockSH | lockEX | lockUN) {
		case lockSH:
		case lockEX:
			s.lock.what = lockExclusive
		case lockUN:
			s.lock.what = lockBack
		default:
			return false
		}
	default:
		if !s.lock.ofRange(ev, f) {
			return false
		}
		cell = &file.ranges
	}
	if !ev.OK() && !refused(ev) {
		return false
	}
	if *cell < 0 {
		*cell = st.state.newCell()
		st.state.locks.used = true
		st.state.cells[*cell].value = 0 // assumed to be free, until a call says otherwise
	}
	s.attr = *cell
	return true
}

// refused reports whether a lock was not granted because another owner has it.
func refused(ev *event.Event) bool {
	return ev.Errno == syscall.EAGAIN || ev.Errno == syscall.EACCES
}

// ofRange takes a lock from the argument of fcntl.
func (l *lock) ofRange(ev *event.Event, f *event.File) bool {
	b := ev.BufArg(2)
	if b == nil || len(b.Inline) < 32 {
		return false
	}
	switch ev.Args[1] {
	case fSetLk, fSetLkw:
		l.owner = ofProcess | uint64(ev.PID)
	case fOFDSetLk, fOFDSetLkw:
	default:
		return false
	}
	le := binary.LittleEndian
	switch le.Uint16(b.Inline) {
	case rangeRead:
	case rangeWrite:
		l.what = lockExclusive
	default:
		l.what = lockBack
	}
	start, length := int64(le.Uint64(b.Inline[8:])), int64(le.Uint64(b.Inline[16:]))
	switch le.Uint16(b.Inline[2:]) {
	case seekSet:
	case seekCur:
		start += f.Pos
	default:
		return false // where the file ended is not certain
	}
	switch l.from, l.to = start, start+length; {
	case length == 0:
		l.to = endless
	case length < 0:
		l.from, l.to = start+length, start
	}
	return l.from >= 0 && l.to > l.from
}

// locking explains a call on locks.
func (s *state) locking(ev *event.Event, sub *footprint) bool {
	if sub.lock.what == lockClose {
		s.closing(sub.attr, &sub.lock)
		s.closing(sub.ranges, &sub.lock)
		return true
	}
	v := s.get(sub.attr)
	if v == unknown {
		if ev.OK() && sub.lock.what != lockBack {
			s.set(sub.attr, s.locks.set([]hold{sub.lock.hold(ev)}))
		}
		return true
	}
	holds := s.locks.sets[v]
	if refused(ev) {
		return s.refusing(ev, sub, holds)
	}
	left := make([]hold, 0, len(holds)+2)
	for _, h := range holds {
		switch {
		case h.owner == sub.lock.owner:
			left = append(left, h.without(&sub.lock)...)
		case !h.conflicts(&sub.lock):
			left = append(left, h)
		case s.certain(&h, ev):
			if s.mode != believe && !s.tolerates(UnexplainedResult) {
				return false
			}
			if s.mode != believe {
				left = append(left, h)
			}
		}
	}
	if sub.lock.what != lockBack {
		left = append(left, sub.lock.hold(ev))
	}
	s.set(sub.attr, s.locks.set(left))
	return true
}

// refusing explains a lock that was not granted.
func (s *state) refusing(ev *event.Event, sub *footprint, holds []hold) bool {
	taken := slices.ContainsFunc(holds, func(h hold) bool {
		return h.owner != sub.lock.owner &&
			h.conflicts(&sub.lock)
	})
	switch {
	case !taken && s.mode == believe:
		s.set(sub.attr, unknown) // a process outside the trace has it
	case !taken:
		return s.tolerates(UnexplainedResult)
	case sub.op == event.OpFlock:
		// The kernel lets go of the lock that was to be another before it tries (flock(2)).
		left := slices.DeleteFunc(slices.Clone(holds), func(h hold) bool {
			return h.owner == sub.lock.owner && h.exclusive != (sub.lock.what == lockExclusive)
		})
		s.set(sub.attr, s.locks.set(left))
	}
	return true
}

// closing is of the locks that a closed descriptor takes along.
func (s *state) closing(cell int32, l *lock) {
	v := s.get(cell)
	if v == unknown || v == 0 {
		return
	}
	holds := slices.Clone(s.locks.sets[v])
	holds = slices.DeleteFunc(holds, func(h hold) bool { return h.owner == ofProcess|uint64(l.pid) })
	for i := range holds {
		holds[i].perhaps = holds[i].perhaps || holds[i].owner == l.owner
	}
	s.set(cell, s.locks.set(holds))
}

func (l *lock) hold(ev *event.Event) hold {
	return hold{owner: l.owner, from: l.from, to: l.to, since: ev.Exit, pid: l.pid, exclusive: l.what == lockExclusive}
}

// conflicts reports whether another owner's hold prevents a lock.
func (h *hold) conflicts(l *lock) bool {
	return l.what != lockBack && h.from < l.to && l.from < h.to && (h.exclusive || l.what == lockExclusive)
}

// without returns what is left of an owner's hold when it locks, or gives back, a range.
func (h hold) without(l *lock) (left []hold) {
	if h.to <= l.from || l.to <= h.from {
		return []hold{h}
	}
	if h.from < l.from {
		before := h
		before.to = l.from
		left = append(left, before)
	}
	if l.to < h.to {
		h.from = l.to
		left = append(left, h)
	}
	return left
}

// certain reports whether a lock is certainly still held when a call is made.
func (s *state) certain(h *hold, ev *event.Event) bool {
	return !h.perhaps && !slices.ContainsFunc(s.locks.released[h.pid],
		func(at int64) bool { return at >= h.since && at <= ev.Exit })
}

// noteRelease notes an event that may release a process's locks; ended says that the process ended.
func (t *lockTable) noteRelease(ev *event.Event, ended bool) {
	if !t.used {
		return
	}
	switch ev.Effect() {
	case event.EffectExecute, event.EffectDupTo, event.EffectCloseRange:
		ended = ended || ev.OK()
	}
	if !ended {
		return
	}
	const most = 64
	times := t.released[ev.PID]
	if len(times) == most {
		times = slices.Delete(times, 0, most/2)
	}
	t.released[ev.PID] = append(times, ev.Exit)
}

// lockOf gives fcntl a class if it is about locks.
func lockOf(ev *event.Event) class {
	if cmd := ev.Args[1]; cmd == fSetLk || cmd == fSetLkw || cmd == fOFDSetLk || cmd == fOFDSetLkw {
		return classLock
	}
	return classNone
}

// lockAccess notes what a call on locks concerns.
func (t *accessCollector) lockAccess(ev *event.Event, s *footprint) {
	h := accessWrite
	if refused(ev) && s.op != event.OpFlock {
		h = accessRead
	}
	t.add(s.attr, h)
	t.add(s.ranges, h)
}
