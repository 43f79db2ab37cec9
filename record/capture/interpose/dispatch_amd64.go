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
	var regs unix.PtraceRegs
	if th.space == nil || unix.PtraceGetRegs(t.TID, &regs) != nil {
		return
	}
	s.restoreMask(th)
	sp := th.space
	switch regs.Rip {
	case sp.addr(s.code.trapEnd):
		if th.slot != nil {
			s.trapped(th, &regs)
		}
		return
	case sp.addr(s.code.tracedEnd):
		if th.slot != nil {
			s.trace(th, &regs, th.slot.Ret)
		}
		return
	}
	site := regs.Rip - 2
	if regs.Cs != 0x33 || info.SysArch() != unix.AUDIT_ARCH_X86_64 {
		s.leaveFast(th, "it makes 32-bit calls")
	}
	if sp.gone {
		if c, err := dispatchOf(t.TID); err == nil && c.Selector != sp.addr(codeBytes) {
			t.Deliver(unix.SIGSYS, info) // it is the program's own
			return
		}
		// Its calls stop as they do without us, at their own places.
		c := dispatchConfig{}
		_ = setDispatch(t.TID, &c)
		t.EveryCall = true
		regs.Rip, regs.Orig_rax = site, ^uint64(0)
		_ = unix.PtraceSetRegs(t.TID, &regs)
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
	s.trace(th, &regs, regs.Rip)
}

// trace makes a thread do its call where the tracer sees it begin and end. It goes on at resume.
func (s *session) trace(th *thread, regs *unix.PtraceRegs, resume uint64) {
	th.resume = resume
	if th.slot != nil {
		th.slot.Ret = resume // without a tracer
		atomic.StoreUint64(&th.slot.State, stateNone)
	}
	regs.Rip, regs.Orig_rax = th.space.addr(s.code.remote), ^uint64(0)
	_ = unix.PtraceSetRegs(th.t.TID, regs)
	th.t.StopAtCall()
}

// restoreMask gives a thread back the mask that it had before the kernel sent it a SIGSYS:
// that takes the signal out.
func (s *session) restoreMask(th *thread) {
	if th.slot == nil || th.slot.Blocked == 0 {
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
		s.drain(th)
		s.rec.Returned(th.t, &ptracer.Syscall{NR: sl.NR, Args: sl.Args}, s.ns(sl.Enter), s.ns(sl.Exit), sl.Result)
		s.unlock(th)
		s.forget(th)
		regs.Rip = sp.addr(s.code.committed)
	case reasonRoom:
		s.drain(th)
		regs.Rip = sp.addr(s.code.again)
		if r := s.rings[th]; r != nil && r.broken {
			s.unlock(th)
			s.returned(sl, regs)
			s.deliver(th)
			s.leaveFast(th, "it wrote over its recording")
		}
	case reasonSignal:
		s.returned(sl, regs)
		s.deliver(th)
	case reasonAgain:
		s.unmade(th, regs)
		s.deliver(th)
	}
	_ = unix.PtraceSetRegs(th.t.TID, regs)
}

// deliver gives a thread the signals that waited.
func (s *session) deliver(th *thread) {
	atomic.StoreUint64(&th.slot.Pending, 0)
	for i := range th.waiting {
		info := &th.waiting[i]
		sig := syscall.Signal(info.Signo)
		if i == 0 {
			th.t.Deliver(sig, info)
			continue
		}
		_ = unix.Tgkill(th.t.PID, th.t.TID, sig)
	}
	th.waiting = nil
}

// returned makes the registers those of a program behind its call.
func (s *session) returned(sl *slot, regs *unix.PtraceRegs) {
	s.arguments(sl, regs)
	regs.Rax, regs.Rip, regs.Rcx = uint64(sl.Result), sl.Ret, sl.Ret
	atomic.StoreUint64(&sl.State, stateNone)
}

// unmade makes the registers those of a program before its call.
func (s *session) unmade(th *thread, regs *unix.PtraceRegs) {
	sl := th.slot
	s.unlock(th) // a handler may make calls that need the position
	s.arguments(sl, regs)
	regs.Rax, regs.Rip = sl.NR, sl.Ret-2
	atomic.StoreUint64(&sl.State, stateNone)
}

func (s *session) arguments(sl *slot, regs *unix.PtraceRegs) {
	regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9 = sl.Args[0], sl.Args[1], sl.Args[2],
		sl.Args[3], sl.Args[4], sl.Args[5]
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
