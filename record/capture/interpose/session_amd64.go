// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/ptrace"
	"github.com/iotape/iotape/record/internal/bpf"
)

// session is a recording. What is not said to be otherwise belongs to the tracing thread.
type session struct {
	o       *capture.Options
	rec     *ptrace.Recorder
	base    *ptracer.Handler // of rec
	code    *code
	tables  *tables
	threads map[*ptracer.Tracee]*thread
	images  map[imageKey]*image
	slow    map[string]*slowSite
	refused map[string]int // processes that are recorded by stops alone, by reason

	// mu guards what the drain uses too: timer, rings, the arenas of rings, and running.
	mu      sync.Mutex
	timer   *timer
	rings   map[*thread]*ringState
	running bool // a program has been executed
	spare   []byte

	stops  uint64 // of threads, for their calls
	met    uint64 // calls at places that were not patched
	stores uint64 // version of the files that are watched
}

// slowSite is a place in a file whose calls all stop.
type slowSite struct {
	where string
	calls uint64
}

// thread is a followed thread.
type thread struct {
	t     *ptracer.Tracee
	space *space // nil: its calls all stop
	files *fileTable
	index int   // of its slot, -1 if it has none
	slot  *slot // nil if it has none

	place    uint64 // where it makes a call that the tracer sees, 0 if it makes none
	undo     int    // calls of our code that stop, and are not recorded
	armed    bool   // its Syscall User Dispatch is ours
	blocked  bool   // its program blocks SIGSYS, when it executes another
	confined bool   // its process, or one that made it, forbade calls
	wanted   bool   // the recorder wants that call's end
	moving   bool   // that call may move positions
	args     [6]uint64
	nr       uint64
	clone    uint64 // flags of the call that makes a thread
}

// fileTable is a table of descriptors that threads share.
type fileTable struct {
	arena *arena
	index int
	users int
}

func (f *fileTable) of() *files { return f.arena.filesOf(f.index) }

func (s *session) handler() *ptracer.Handler {
	return &ptracer.Handler{
		Clock: s.base.Clock, Fork: s.fork, Birth: s.born, Exec: s.exec, Enter: s.enter, Leave: s.leave,
		Signal: s.signal, Dispatched: s.dispatched, Dispatching: s.dispatching, Exit: s.exit, Dying: s.dying,
	}
}

// of returns what is known of a thread.
func (s *session) of(t *ptracer.Tracee) *thread {
	th := s.threads[t]
	if th == nil {
		th = &thread{t: t, index: -1}
		s.threads[t] = th
	}
	return th
}

// fork starts to follow a thread, which has not run yet.
func (s *session) fork(parent, child *ptracer.Tracee) {
	th := s.of(child)
	if parent == nil {
		s.base.Fork(nil, child)
		return
	}
	from := s.of(parent)
	s.drain(from)
	s.base.Fork(parent, child)
	child.EveryCall = parent.EveryCall
	th.confined = from.confined
	if from.space == nil {
		return
	}
	if th.space = from.space; from.clone&unix.CLONE_VM == 0 {
		th.space = from.space.copy(child.PID)
	} else {
		th.space.users++
	}
	if th.files = from.files; th.files != nil && from.clone&unix.CLONE_FILES != 0 {
		th.files.users++
		atomic.StoreUint64(&th.files.of().Shared, 1)
	} else {
		if from.files != nil { // their open files are shared
			atomic.AddUint64(&from.files.of().Epoch, 1)
		}
		th.files = th.space.newFiles()
		if th.files != nil && from.files != nil {
			to, of := th.files.of(), from.files.of()
			to.Masking, to.Action, to.Left = of.Masking, of.Action, of.Left
		}
	}
	s.takeSlot(th)
	if !th.space.gone {
		child.EveryCall = th.slot == nil
	}
	if th.slot != nil && from.slot != nil {
		th.slot.Blocked = from.slot.Blocked
	}
}

// takeSlot gives a thread its slot and its ring. One without makes all its calls by stops.
func (s *session) takeSlot(th *thread) {
	a := th.space.arena
	if th.files == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if th.index = a.takeSlot(th.t.PID, th.t.TID, th.files.index, a.base+s.code.common); th.index < 0 {
		return
	}
	th.selects(selectAllow)
	th.slot = a.slot(th.index)
	th.slot.Foreign = foreign(th.t.TID)
	s.identify(th)
	s.rings[th] = &ringState{slot: th.slot, mem: a.ring(th.index), pid: uint32(th.t.PID), tid: uint32(th.t.TID)}
}

// born readies a new thread for its first instruction.
func (s *session) born(t *ptracer.Tracee) {
	th := s.of(t)
	if th.space == nil {
		return
	}
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(t.TID, &regs) != nil {
		return
	}
	s.arm(th, &regs)
}

// leaveFast makes all calls of a thread's process stop from now on, as they do without our code.
func (s *session) leaveFast(th *thread, why string) {
	sp := th.space
	if sp == nil || sp.gone {
		return
	}
	sp.gone = true
	s.refused[why]++
	sp.restore()
	if th.files != nil {
		atomic.StoreUint64(&th.files.of().Left, 1)
	}
	for _, other := range s.threads {
		if other.space == sp {
			other.t.EveryCall = true
		}
	}
}

// giveUp is told that a thread's part of our memory is damaged: what follows is recorded by stops.
func (s *session) giveUp(th *thread) {
	s.drain(th)
	s.mu.Lock()
	if r := s.rings[th]; r != nil && !r.broken {
		s.fail(r)
	}
	s.mu.Unlock()
	s.leaveFast(th, "it wrote over its recording")
}

// confined is told that a thread is about to forbid calls to its process: ours might be among them.
func (s *session) confined(th *thread) {
	th.confined = true
	for _, other := range s.threads {
		other.confined = other.confined || other.space != nil && other.space == th.space
	}
	s.leaveFast(th, "it forbids calls to itself (seccomp)")
}

// exec follows a thread into a new program: its memory is another's.
func (s *session) exec(t *ptracer.Tracee, oldTID int, replaced *ptracer.Tracee) {
	th := s.of(t)
	s.drain(th)
	if replaced != nil {
		if other := s.threads[replaced]; other != nil {
			s.finish(other)
			delete(s.threads, replaced)
		}
	}
	s.base.Exec(t, oldTID, replaced)
	th.blocked = th.slot != nil && th.slot.Blocked != 0
	s.finish(th)
	th.place, th.undo, th.armed = 0, 0, false
	t.EveryCall = false
}

// finish gives back what a thread used of its process's memory.
func (s *session) finish(th *thread) {
	s.drain(th)
	if th.space == nil {
		return
	}
	if th.slot != nil {
		s.unlock(th)
	}
	th.ended()
	s.mu.Lock()
	delete(s.rings, th)
	if th.index >= 0 {
		th.space.arena.slots[th.index] = false
	}
	if th.files != nil {
		if th.files.users--; th.files.users == 0 {
			th.files.arena.files[th.files.index] = false
		}
	}
	th.space.release()
	s.mu.Unlock()
	th.space, th.files, th.slot, th.index = nil, nil, nil, -1
}

// recordReturned records the call that a thread has made in our code, from its slot: it returned at exit, ns.
func (s *session) recordReturned(th *thread, exit uint64, ret int64) {
	sl := th.slot
	s.drain(th)
	call := &ptracer.Syscall{NR: sl.NR, Args: sl.args()}
	s.rec.Returned(th.t, call, s.ns(sl.Enter), exit, ret, sl.offered())
	s.watch()
	th.forget(sl.NR) // before others count on
	s.unlock(th)
}

// dying records the call of a thread that was killed in our code when its call had returned.
func (s *session) dying(t *ptracer.Tracee) {
	th := s.of(t)
	sl := th.slot
	if sl == nil {
		return
	}
	ret, returned := sl.Result, true
	switch atomic.LoadUint64(&sl.State) {
	case stateCalling:
		if ret, returned = t.Result(); !returned {
			return // exit says that it was interrupted
		}
	case stateAfter:
	default:
		return
	}
	s.recordReturned(th, bpf.Now(), ret)
	atomic.StoreUint64(&sl.State, stateNone)
}

func (s *session) exit(t *ptracer.Tracee, status unix.WaitStatus) {
	th := s.of(t)
	s.drain(th)
	if sl := th.slot; sl != nil {
		if state := atomic.LoadUint64(&sl.State); state == stateCalling || state == stateAfter {
			th.forget(sl.NR)
			s.unlock(th)
			s.rec.Interrupted(t, &ptracer.Syscall{NR: sl.NR, Args: sl.args()}, s.ns(sl.Enter))
		}
	}
	s.base.Exit(t, status)
	s.watch()
	s.finish(th)
	delete(s.threads, t)
}

// enter is told of a call that the tracer makes for a thread, or that stops anyway.
func (s *session) enter(t *ptracer.Tracee, c *ptracer.Syscall) bool {
	th := s.of(t)
	if th.undo > 0 {
		th.undo--
		return false
	}
	if s.arms(th, c) {
		return false
	}
	s.stops++
	s.drain(th)
	th.nr, th.args, th.clone = c.NR, c.Args, 0
	if c.Compat {
		th.nr = ^uint64(0)
	}
	switch th.nr {
	case unix.SYS_VFORK:
		th.clone = unix.CLONE_VM
	case unix.SYS_CLONE:
		th.clone = c.Args[0]
	case unix.SYS_CLONE3:
		var b [8]byte
		if th.space != nil && th.space.read(b[:], c.Args[0]) {
			th.clone = binary.LittleEndian.Uint64(b[:])
		}
	case unix.SYS_PRCTL:
		if c.Args[0] == unix.PR_SET_SYSCALL_USER_DISPATCH {
			s.leaveFast(th, "it uses Syscall User Dispatch")
		}
	}
	if s.ends(th, c) && s.disarmed(th) {
		return false
	}
	th.begins()
	th.wanted = s.base.Enter(t, c)
	return true
}

// ends is told of a call that may make our code useless for its process, or impossible: then that is recorded by stops.
// It reports whether Syscall User Dispatch has to end before the call.
func (s *session) ends(th *thread, c *ptracer.Syscall) bool {
	switch th.nr {
	case unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT, unix.SYS_MADVISE:
		if !touches(th.space, c) {
			return false
		}
		s.leaveFast(th, "it changes the memory of its recording") // the selector is there
		return !th.confined
	case unix.SYS_ARCH_PRCTL:
		const setGS = 0x1001 // ARCH_SET_GS
		if c.Args[0] != setGS {
			return false
		}
		s.leaveFast(th, "it uses the register GS")
		return !th.confined
	case unix.SYS_PRCTL, unix.SYS_SECCOMP:
		if !confines(c) {
			return false
		}
		before := th.confined
		s.confined(th)
		return !before // what it forbids may include our call
	}
	return false
}

// confines reports whether a call forbids calls to its process.
func confines(c *ptracer.Syscall) bool {
	mode, filter := c.Args[0], c.Args[2]
	if c.NR == unix.SYS_PRCTL {
		if c.Args[0] != unix.PR_SET_SECCOMP {
			return false
		}
		mode = c.Args[1] - 1 // SECCOMP_MODE_STRICT and _FILTER
	}
	// A call without a filter fails: programs ask by it what the kernel has.
	return mode == unix.SECCOMP_SET_MODE_STRICT || mode == unix.SECCOMP_SET_MODE_FILTER && filter != 0
}

// touches reports whether a call changes a range of memory that is ours.
func touches(sp *space, c *ptracer.Syscall) bool {
	fixed := c.NR != unix.SYS_MMAP || c.Args[3]&(unix.MAP_FIXED|unix.MAP_FIXED_NOREPLACE) != 0
	if sp == nil || !fixed {
		return false
	}
	from, to := c.Args[0], c.Args[0]+c.Args[1]
	if c.NR == unix.SYS_MREMAP && c.Args[3]&unix.MREMAP_FIXED != 0 && sp.ours(c.Args[4], c.Args[4]+c.Args[2]) {
		return true
	}
	return sp.ours(from, to)
}

// leave is told of that call's end.
func (s *session) leave(t *ptracer.Tracee, ret int64) {
	th := s.of(t)
	s.stops++
	s.showAction(th, ret)
	if th.wanted {
		s.base.Leave(t, ret)
	}
	th.ended()
	th.forget(th.nr)
	s.watch()
	if th.slot != nil && s.o.EveryCall {
		if mask, err := signalMask(t.TID); err == nil {
			th.slot.Blocked = mask >> (unix.SIGSYS - 1) & 1
		}
	}
	if th.nr < tableCalls && event.Lookup(event.ByNumber(event.AMD64, int(th.nr))).Identity {
		for _, other := range s.threads { // some change that of others
			s.identify(other)
		}
	}
	if th.place != 0 {
		s.back(th)
	}
	switch th.nr {
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		if ret == 0 {
			s.inject(th)
		}
	case unix.SYS_PRCTL:
		if ret == 0 && th.args[0] == unix.PR_SET_SYSCALL_USER_DISPATCH {
			th.armed = false // it is the program's now
		}
	case unix.SYS_UNSHARE, unix.SYS_SETNS:
		if th.slot != nil {
			th.slot.Foreign = foreign(t.TID)
		}
	case unix.SYS_MMAP:
		if th.space != nil && ret > 0 && th.args[2]&unix.PROT_EXEC != 0 {
			s.mapped(th, uint64(ret))
		}
	}
	th.nr = ^uint64(0)
}

// back makes calls of a thread stop again when the one is over that the tracer saw.
func (s *session) back(th *thread) {
	th.place = 0
	if th.slot != nil {
		s.outside(th)
	}
	var regs unix.PtraceRegs
	if th.armed && !th.space.gone && unix.PtraceGetRegs(th.t.TID, &regs) == nil {
		regs.Gs_base = th.space.arena.slotAddr(th.index)
		_ = unix.PtraceSetRegs(th.t.TID, &regs)
		th.selects(selectBlock)
	}
}

// programAt returns where in its program a thread makes its call that is stopped at an address.
func (s *session) programAt(t *ptracer.Tracee, pc uint64) uint64 {
	th := s.of(t)
	if th.space == nil {
		return pc
	}
	if pc-th.space.arena.base < stubsAt && th.slot != nil {
		return th.slot.Ret
	}
	if at := th.space.startOf(pc); at != 0 {
		return at
	}
	return pc
}

// unlock gives back the position that a thread holds.
func (s *session) unlock(th *thread) {
	sl, a := th.slot, th.space.arena
	lock := sl.Locked - a.base - uint64(filesAt)
	if sl.Locked != 0 && lock < uint64(arenaSlots*filesBytes) && lock%8 == 0 {
		atomic.StoreUint64(at[uint64](a.mem, filesAt+int(lock)), 0)
	}
	sl.Locked = 0
}

// quit makes what runs go on without us: the jumps to our code are taken out of the programs,
// and no call stops.
func (s *session) quit() {
	for _, th := range s.threads {
		sp := th.space
		if sp == nil {
			continue
		}
		if !sp.gone && sp.attach(th.t.PID) {
			sp.restore()
		}
		sp.gone = true
		c := sp.arena.control()
		c.Class = [tableCalls]class{}
		c.Selectors = [arenaSlots]selector{}
	}
}

// foreign returns 1 if a thread has other numbers of processes or users than the recorder, or may have.
func foreign(tid int) uint64 {
	for _, of := range []string{"user", "pid"} {
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", tid, of))
		ours, err2 := os.Readlink("/proc/thread-self/ns/" + of)
		if err != nil || err2 != nil || its != ours {
			return 1
		}
	}
	return 0
}

// identify tells a thread's code what the filters may ask of who makes its calls.
func (s *session) identify(th *thread) {
	if th.slot == nil || s.o.Prefilter == nil && s.o.Stacks == nil {
		return
	}
	le := binary.LittleEndian
	c := s.rec.Identity(th.t)
	th.slot.Who = [...]uint64{
		uint64(c.PPID), uint64(c.PGRP), uint64(c.SID), uint64(c.UID), uint64(c.GID),
		le.Uint64(c.Comm[:]), le.Uint64(c.Comm[8:]),
	}
}
