// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/ptracer"
)

const (
	partPatience = time.Second // for children that share their maker's memory, and for what is frozen
	partPause    = 2 * time.Millisecond
)

// leaving lets what runs already go on as it was before the recording.
func (s *session) leaving() {
	const over = 10 * time.Second // when Run has returned nobody answers
	for began := time.Now(); ; time.Sleep(partPause) {
		done := make(chan bool, 1)
		s.rec.Do(func() { done <- s.part(time.Since(began) > partPatience) })
		select {
		case gone := <-done:
			if gone {
				return
			}
		case <-time.After(over):
			return
		}
	}
}

// part stops all threads, takes our code out of their processes and lets them go. It returns false if it
// would be better to do that later, unless it is told that it is late.
func (s *session) part(late bool) bool {
	for _, th := range s.threads {
		if !late && th.space != nil && (th.vforks() || frozen(th.t.PID)) {
			return false // its thread cannot be stopped, or cannot make calls for us
		}
	}
	tr := s.rec.Engine()
	tr.StopAll()
	spaces := map[*space][]*thread{}
	tr.Threads(func(t *ptracer.Tracee) {
		if th := s.of(t); th.space != nil {
			spaces[th.space] = append(spaces[th.space], th)
		}
	})
	left := 0
	for sp, threads := range spaces {
		if frozen(sp.pid) || !s.partFrom(sp, threads) {
			s.leaveMapped(sp, threads)
			left++
		}
	}
	tr.LetGo()
	if left > 0 && s.o.Note != nil {
		s.o.Note(strconv.Itoa(left) + " processes go on with code of the recording in their memory, which does " +
			"nothing any more: they are frozen, or could not be stopped at a safe place")
	}
	return true
}

// vforks reports whether a thread waits until its child has executed a program.
func (th *thread) vforks() bool {
	switch th.nr {
	case unix.SYS_VFORK:
		return true
	case unix.SYS_CLONE, unix.SYS_CLONE3:
		return th.clone&unix.CLONE_VFORK != 0
	}
	return false
}

// partFrom takes our code out of a process. It returns false if that is not possible; then our code is still there.
func (s *session) partFrom(sp *space, threads []*thread) bool {
	var caller *thread
	if sp.torn || sp.users != len(threads) || !sp.attach(threads[0].t.PID) {
		return false
	}
	for _, th := range threads {
		if th.confined || th.t.PID != sp.pid || !s.settled(th) || !s.evict(th) {
			return false
		}
	}
	for _, th := range threads {
		if th.t.Where() == ptracer.AtEnd {
			continue
		}
		if th.slot != nil && (caller == nil || th.t.Where() == ptracer.Resting) {
			caller = th
		}
	}
	if caller == nil { // all end
		return !alive(threads)
	}
	for _, th := range threads {
		s.undispatch(th)
	}
	r, err := s.remote(sp, caller.t, sp.mappings())
	if err != nil {
		return false
	}
	s.leaveProcess(r, sp, threads)
	return true
}

func alive(threads []*thread) bool {
	for _, th := range threads {
		if th.t.Where() != ptracer.AtEnd {
			return true
		}
	}
	return false
}

// undispatch ends the Syscall User Dispatch that we have set for a thread.
func (s *session) undispatch(th *thread) {
	if th.armed {
		_ = setDispatch(th.t.TID, dispatch{})
		th.armed = false
	}
}

// leaveProcess makes a process what it was before enterProcess. No thread of it is in our code.
func (s *session) leaveProcess(r *remote, sp *space, threads []*thread) {
	caller := s.of(r.t)
	for _, th := range threads {
		s.undispatch(th)
	}
	if len(sp.sites) > 0 {
		sp.restore()
	}
	sp.restoreJumps()
	f := caller.files.of()
	for sig := unix.Signal(1); sig <= 64; sig++ {
		if f.Masking&signalBit(sig) == 0 {
			continue
		}
		if a, err := r.action(caller, sig); err == nil {
			a[3] |= signalBit(unix.SIGSYS)
			_ = r.setAction(caller, sig, a)
		}
	}
	if a, err := r.action(caller, unix.SIGSYS); err == nil && a[0] == sp.addr(s.code.orphan) {
		_ = r.setAction(caller, unix.SIGSYS, f.Action)
	}
	for _, th := range threads {
		if th == caller || th.t.Where() == ptracer.AtEnd {
			continue
		}
		var regs unix.PtraceRegs
		if unix.PtraceGetRegs(th.t.TID, &regs) == nil && sp.ours(regs.Gs_base, regs.Gs_base+1) {
			regs.Gs_base = 0
			_ = unix.PtraceSetRegs(th.t.TID, &regs)
		}
		if th.slot != nil && th.slot.Blocked != 0 {
			if mask, err := signalMask(th.t.TID); err == nil {
				_ = setSignalMask(th.t.TID, mask|signalBit(unix.SIGSYS))
			}
		}
	}
	if sp.ours(r.saved.Gs_base, r.saved.Gs_base+1) {
		r.saved.Gs_base = 0
	}
	if caller.slot.Blocked != 0 {
		r.mask |= signalBit(unix.SIGSYS)
	}
	s.takeBack(r)
	_ = r.end()
	for _, th := range threads {
		s.finish(th)
	}
}

// leaveMapped makes a process go on without the recorder, though our code stays in its memory.
func (s *session) leaveMapped(sp *space, threads []*thread) {
	if !sp.gone && sp.attach(sp.pid) {
		sp.restore()
	}
	sp.gone = true
	c := sp.arena.control()
	c.Class = [tableCalls]class{}
	c.Selectors = [arenaSlots]selector{}
	for _, th := range threads {
		s.undispatch(th)
	}
}

// settled lets a stopped thread meet the faults that wait for it: those of our dispatch and of places that were being
// patched would be signals to its program.
func (s *session) settled(th *thread) bool {
	const most = 16
	for range most {
		switch th.t.Where() {
		case ptracer.Running, ptracer.Elsewhere:
			return false
		case ptracer.AtEnd:
			return true
		}
		name := "/proc/" + strconv.Itoa(th.t.PID) + "/task/" + strconv.Itoa(th.t.TID) + "/status"
		status, err := os.ReadFile(name)
		if err != nil {
			return true // it ended
		}
		due := statusNumber(status, "SigPnd:", 16) &^ statusNumber(status, "SigBlk:", 16)
		if due&(signalBit(unix.SIGSYS)|signalBit(unix.SIGTRAP)) == 0 {
			return true
		}
		if !th.t.Next() {
			return th.t.Where() == ptracer.AtEnd
		}
	}
	return false
}

// evict moves a stopped thread out of our code, to where it has to be in its program.
func (s *session) evict(th *thread) bool {
	const most = 64
	sp := th.space
	for range most {
		var regs unix.PtraceRegs
		switch th.t.Where() {
		case ptracer.Running, ptracer.Elsewhere:
			return false
		case ptracer.AtEnd:
			return true
		case ptracer.AtFork:
			if !th.t.EndCall() {
				return false
			}
		}
		if unix.PtraceGetRegs(th.t.TID, &regs) != nil {
			return false
		}
		if th.t.Where() == ptracer.AtEntry {
			if !s.unbegun(th, &regs) {
				return false
			}
			continue
		}
		off := regs.Rip - sp.arena.base
		switch start := sp.startOf(regs.Rip); {
		case off >= stubsAt && start == 0:
			return true
		case off >= stubsAt:
			regs.Rip = start
			_ = unix.PtraceSetRegs(th.t.TID, &regs)
		case th.slot == nil: // it is about to go to a stub
			if off != s.code.raw {
				return false
			}
			regs.Rip = sp.siteBefore(regs.Rcx)
			_ = unix.PtraceSetRegs(th.t.TID, &regs)
		case s.handles(th, off):
			if !s.stepOut(th) {
				return false
			}
		case off == s.code.gateEnd && restarts(&regs):
			s.interrupted(th, &regs)
		default:
			s.inside(th, &regs, off, unix.SIGSTOP)
			if atomic.LoadUint64(&th.slot.Pending) != 0 && !th.t.Next() {
				return th.t.Where() == ptracer.AtEnd
			}
		}
	}
	return false
}

// unbegun takes a thread that is at the entry of a call back to before it.
func (s *session) unbegun(th *thread, regs *unix.PtraceRegs) bool {
	if int64(regs.Orig_rax) >= 0 {
		regs.Rax, regs.Orig_rax = regs.Orig_rax, ^uint64(0)
		regs.Rip -= uint64(len(syscallBytes))
	}
	if unix.PtraceSetRegs(th.t.TID, regs) != nil || !th.t.EndCall() {
		return false
	}
	th.place = 0
	if th.slot != nil {
		s.outside(th)
	}
	return unix.PtraceSetRegs(th.t.TID, regs) == nil
}

// interrupted brings a thread, whose call in our code waits, to where its program makes that call again.
func (s *session) interrupted(th *thread, regs *unix.PtraceRegs) {
	sl := th.slot
	s.drain(th)
	s.rec.Interrupted(th.t, &ptracer.Syscall{NR: sl.NR, Args: sl.args()}, s.ns(sl.Enter))
	th.forget(sl.NR)
	s.unlock(th)
	s.arguments(sl, regs)
	regs.Rip, regs.Rcx = sl.Ret, sl.Ret
	s.outside(th)
	_ = unix.PtraceSetRegs(th.t.TID, regs)
}

// handles reports whether a thread at an offset of our code is in the handler of SIGSYS.
func (s *session) handles(th *thread, off uint64) bool {
	c := s.code
	if atomic.LoadUint64(&th.slot.State) != stateNone {
		return false
	}
	return off >= c.orphan && off < c.orphanEnd || off >= c.restorer && off < c.restorerEnd ||
		off >= c.symbols["own_call"] && off < c.symbols["own_end"]+1 || off >= c.remoteEnd ||
		off >= c.userBegin && off <= c.userFault
}

// stepOut lets a thread leave the handler of SIGSYS.
func (s *session) stepOut(th *thread) bool {
	const most = 100_000
	mask, err := signalMask(th.t.TID)
	if err != nil || setSignalMask(th.t.TID, ^uint64(0)) != nil {
		return false
	}
	for range most {
		var regs unix.PtraceRegs
		if unix.PtraceGetRegs(th.t.TID, &regs) != nil {
			return false
		}
		off := regs.Rip - th.space.arena.base
		if off >= stubsAt || !s.handles(th, off) {
			_ = setSignalMask(th.t.TID, mask)
			return true
		}
		returns := off == s.code.restorerEnd-uint64(len(syscallBytes)) // with the mask of its frame
		if !th.t.Step() {
			return false
		}
		if returns {
			return true
		}
	}
	return false
}

// restoreJumps makes the padding what it was, that jumps to our code lead through.
func (sp *space) restoreJumps() {
	for site := range sp.past {
		r := sp.region(site)
		if r == nil || r.image == nil || !r.image.mappedAt(sp, r.bias) {
			continue
		}
		p := r.image.plans[site-r.bias]
		for i := range p.steps {
			st := &p.steps[i]
			sp.write(st.was[:st.bytes()], r.bias+st.off)
		}
	}
}
