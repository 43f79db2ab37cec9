// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/ptracer"
)

// dispatched is told of a call that was not made at our gate: of a place that is not patched
// (yet), of one that our code leaves to the tracer, or of our code itself.
func (s *session) dispatched(t *ptracer.Tracee, info *ptracer.Siginfo) {
	th := s.of(t)
	s.stops++
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(t.TID, &regs) != nil {
		return
	}
	if !th.armed { // by us: it is the program's own
		s.dispatch(t, &regs, info)
		return
	}
	s.restoreMask(th)
	sp := th.space
	switch regs.Rip {
	case sp.addr(s.code.trap):
		if th.slot != nil {
			s.trapped(th, &regs)
		}
		return
	}
	site := regs.Rip
	if sp.stubOf(site) == site && !sp.gone {
		s.trace(th, &regs, site)
		return
	}
	s.met++
	if regs.Cs != 0x33 || info.SysArch() != unix.AUDIT_ARCH_X86_64 {
		s.leaveFast(th, "it makes 32-bit calls")
	}
	if sp.gone {
		s.dispatchedGone(th, &regs, info)
		return
	}
	if s.patch(th, site) {
		if n := len(sp.moved[site]); n > 0 { // it was restarted, or met before it was patched
			regs.Rip, regs.Orig_rax = sp.sites[site]+uint64(n), ^uint64(0)
			_ = unix.PtraceSetRegs(t.TID, &regs)
			return
		}
		regs.Rip, regs.Orig_rax = site, ^uint64(0)
		_ = unix.PtraceSetRegs(t.TID, &regs)
		return
	}
	if stub, ok := s.stubFor(th, site); ok && regs.Rax < tableCalls && s.tables.class[regs.Rax] != classTrace {
		regs.Rip, regs.Orig_rax = stub, ^uint64(0)
		_ = unix.PtraceSetRegs(t.TID, &regs)
		return
	}
	s.trace(th, &regs, site)
}

// dispatchedGone is told of a call of a process that is recorded by stops: its calls stop as they do without us, at
// their own places.
func (s *session) dispatchedGone(th *thread, regs *unix.PtraceRegs, info *ptracer.Siginfo) {
	th.t.EveryCall = true
	regs.Orig_rax = ^uint64(0)
	native := info.SysArch() == unix.AUDIT_ARCH_X86_64 // others have arguments in registers that our code changes
	if native && !th.confined && !th.space.torn && th.hasSlot(regs) {
		s.disarm(th, regs)
		return
	}
	th.selects(selectAllow)
	_ = unix.PtraceSetRegs(th.t.TID, regs)
}

// dispatching makes a thread meet its call again, whatever comes. See ptracer.Handler.
func (s *session) dispatching(tid int, info *ptracer.Siginfo) {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) == nil {
		regs.Rip -= uint64(len(syscallBytes))
		regs.Orig_rax = ^uint64(0)
		_ = unix.PtraceSetRegs(tid, &regs)
	}
}

// dispatch gives a program the signal of its own Syscall User Dispatch.
func (s *session) dispatch(t *ptracer.Tracee, regs *unix.PtraceRegs, info *ptracer.Siginfo) {
	regs.Rip += uint64(len(syscallBytes))
	_ = unix.PtraceSetRegs(t.TID, regs)
	t.Deliver(unix.SIGSYS, info)
}

// trace makes a thread do its call, at a place, where the tracer sees it begin and end. Until
// then none of its calls is dispatched, and what it makes has no slot: should there be no tracer any more, both go on.
func (s *session) trace(th *thread, regs *unix.PtraceRegs, place uint64) {
	if th.armed {
		th.selects(selectAllow)
	}
	switch regs.Rax {
	case unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_FORK, unix.SYS_VFORK:
		regs.Gs_base = th.space.arena.slotAddr(noThread)
	}
	regs.Rip, regs.Orig_rax = place, ^uint64(0)
	_ = unix.PtraceSetRegs(th.t.TID, regs)
	th.place = place
	th.t.StopAtCall()
}

// restoreMask gives a thread back the mask that it had before the kernel sent it a SIGSYS:
// that takes the signal out.
func (s *session) restoreMask(th *thread) {
	if !s.o.EveryCall || th.slot == nil || th.slot.Blocked == 0 {
		return
	}
	if mask, err := signalMask(th.t.TID); err == nil {
		_ = setSignalMask(th.t.TID, mask|signalBit(unix.SIGSYS))
	}
}

// trapped does what our code in a thread needs the tracer for.
func (s *session) trapped(th *thread, regs *unix.PtraceRegs) {
	sl, sp := th.slot, th.space
	regs.Orig_rax = ^uint64(0)
	switch sl.Reason {
	case reasonRecord:
		s.recordReturned(th, s.ns(sl.Exit), sl.Result)
		regs.Rip = sp.addr(s.code.committed)
	case reasonRoom:
		s.drain(th)
		regs.Rip = sp.addr(s.code.again)
		if r := s.rings[th]; r != nil && r.broken {
			s.unlock(th)
			s.returned(th, regs)
			s.unpend(th)
			s.leaveFast(th, "it wrote over its recording")
		}
	case reasonSignal:
		s.returned(th, regs)
		s.unpend(th)
	case reasonAgain:
		s.unmade(th, regs)
		s.unpend(th)
	default: // the program wrote there
		regs.Rip = sp.addr(s.code.committed)
	}
	_ = unix.PtraceSetRegs(th.t.TID, regs)
}

// pend keeps a signal that a thread is about to get from it until it has left our code: blocked,
// so that the kernel keeps it, also without a tracer. Other faults are not blocked, nor is SIGSYS.
func (s *session) pend(th *thread, sig syscall.Signal) {
	sl := th.slot
	if atomic.LoadUint64(&sl.Pending) != 0 {
		return
	}
	mask, err := signalMask(th.t.TID)
	if err != nil {
		return
	}
	sl.Mask = mask
	atomic.StoreUint64(&sl.Pending, 1)
	const faults = 1<<(unix.SIGILL-1) | 1<<(unix.SIGTRAP-1) | 1<<(unix.SIGBUS-1) | 1<<(unix.SIGFPE-1) |
		1<<(unix.SIGSEGV-1) | 1<<(unix.SIGSYS-1)
	_ = setSignalMask(th.t.TID, ^uint64(faults)|signalBit(sig)&^signalBit(unix.SIGSYS))
}

// unpend lets the kernel deliver what was kept.
func (s *session) unpend(th *thread) {
	if sl := th.slot; atomic.LoadUint64(&sl.Pending) != 0 {
		_ = setSignalMask(th.t.TID, sl.Mask)
		atomic.StoreUint64(&sl.Pending, 0)
	}
}

// returned makes the registers those of a program behind its call.
func (s *session) returned(th *thread, regs *unix.PtraceRegs) {
	sl := th.slot
	s.arguments(sl, regs)
	regs.Rax, regs.Rip, regs.Rcx = uint64(sl.Result), sl.Ret, sl.Ret
	s.outside(th)
}

// unmade makes the registers those of a program before its call.
func (s *session) unmade(th *thread, regs *unix.PtraceRegs) {
	sl := th.slot
	s.unlock(th) // a handler may make calls that need the position
	s.arguments(sl, regs)
	regs.Rax, regs.Rip = sl.NR, sl.Ret-2
	s.outside(th)
}

// outside says that a thread is not in our code any more.
func (s *session) outside(th *thread) {
	th.slot.Entry = th.slot.Open
	atomic.StoreUint64(&th.slot.State, stateNone)
}

func (s *session) arguments(sl *slot, regs *unix.PtraceRegs) {
	a := sl.args()
	regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9 = a[0], a[1], a[2], a[3], a[4], a[5]
	s.flags(sl, regs)
}

// flags gives back the flags that our code has saved.
func (s *session) flags(sl *slot, regs *unix.PtraceRegs) {
	const (
		kept     = 0xd5 // SF ZF AF PF CF
		overflow = 1 << 11
	)
	regs.Eflags = regs.Eflags&^(kept|overflow) | sl.Flags>>8&kept | sl.Flags&1<<11
}

// noteSlow counts a call at a place that stays slow.
func (s *session) noteSlow(th *thread, site uint64) {
	where := "code made at run time"
	if r := th.space.region(site); r != nil {
		where = fmt.Sprintf("%s+%#x", filepath.Base(r.name), site-r.bias)
	}
	at := s.slow[where]
	if at == nil {
		at = &slowSite{where: where}
		s.slow[where] = at
	}
	at.calls++
}
