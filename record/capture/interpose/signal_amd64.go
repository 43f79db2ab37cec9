// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/internal/bpf"
)

// signal decides about a signal that a thread is about to get. A program's handler must never
// run within our code: a thread that is there is first brought back to before its call or
// behind it.
func (s *session) signal(t *ptracer.Tracee, sig syscall.Signal, info *ptracer.Siginfo) ptracer.Verdict {
	th := s.of(t)
	if th.space == nil {
		return ptracer.Deliver
	}
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(t.TID, &regs) != nil {
		return ptracer.Deliver
	}
	sp, c := th.space, s.code
	off := regs.Rip - sp.arena.base
	switch {
	case (sig == syscall.SIGSEGV || sig == syscall.SIGBUS) && info.Code > 0:
		if off >= c.userBegin && off < c.userEnd {
			regs.Rip = sp.addr(c.userFault) // memory of the program's that is not there
			_ = unix.PtraceSetRegs(t.TID, &regs)
			return ptracer.Swallow
		}
		if off == c.common { // it has no slot, or changed GS without a call
			if th.slot != nil {
				s.leaveFast(th, "it uses the register GS")
			}
			s.trace(th, &regs, regs.Rcx)
			return ptracer.Swallow
		}
		if off < stubsAt && th.slot != nil { // the program wrote over its slot: what it held is lost
			s.giveUp(th)
			return ptracer.Deliver
		}
	case sig == syscall.SIGTRAP && sp.patching(regs.Rip-1):
		regs.Rip-- // it met a place that was being patched
		_ = unix.PtraceSetRegs(t.TID, &regs)
		return ptracer.Swallow
	}
	if off < codeBytes && th.slot != nil {
		if off < stubsAt {
			return s.inside(th, &regs, off, info)
		}
	}
	if start := sp.startOf(regs.Rip); start != 0 {
		regs.Rip = start
		_ = unix.PtraceSetRegs(t.TID, &regs)
	}
	return ptracer.Deliver
}

// inside decides about a signal to a thread that is in our code.
func (s *session) inside(th *thread, regs *unix.PtraceRegs, off uint64, info *ptracer.Siginfo) ptracer.Verdict {
	c, sl := s.code, th.slot
	switch {
	case off == c.remote: // the call that the tracer is to see has not begun
		regs.Rip = th.resume - 2
		th.resume = 0
		th.t.CancelStopAtCall()
	case off == c.remoteEnd && th.resume != 0:
		regs.Rip, regs.Rcx = th.resume, th.resume
		th.resume = 0
	case off < c.commonSaved:
		regs.Rip = regs.Rcx - 2
	case off <= c.gate || off >= c.pass && off <= c.passGate || off >= c.tracedWay && off <= c.traced:
		regs.Rax, regs.Rdx, regs.Rip = sl.NR, sl.Args[2], sl.Ret-2
		if off > c.flagsSaved {
			s.flags(sl, regs)
		}
		s.unlock(th)
		atomic.StoreUint64(&sl.State, stateNone)
	case off == c.gateEnd: // it has returned; if it is to be restarted, the kernel does that next
		s.drain(th)
		call := &ptracer.Syscall{NR: sl.NR, Args: sl.Args}
		s.rec.Returned(th.t, call, s.ns(sl.Enter), bpf.Now(), int64(regs.Rax))
		s.unlock(th)
		s.forget(th)
		s.flags(sl, regs)
		regs.Rip, regs.Rcx = sl.Ret, sl.Ret
		atomic.StoreUint64(&sl.State, stateNone)
	case off >= c.passEnd && off < c.passDone:
		if off > c.passEnd {
			regs.Rax = uint64(sl.Result)
		}
		s.flags(sl, regs)
		regs.Rip, regs.Rcx = sl.Ret, sl.Ret
	case off >= c.pendingChecked && off < c.restoreEnd:
		s.returned(sl, regs)
	case off >= c.checkDone && off < c.gatesEnd && off < c.checkEnd:
		s.unmade(th, regs)
	default:
		th.waiting = append(th.waiting, *info)
		atomic.StoreUint64(&sl.Pending, 1)
		return ptracer.Swallow
	}
	_ = unix.PtraceSetRegs(th.t.TID, regs)
	return ptracer.Deliver
}
