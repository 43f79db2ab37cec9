// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/internal/bpf"
)

// signal decides about a signal that a thread is about to get, and records it if it gets it now. One that
// is kept until the thread has left our code comes again.
func (s *session) signal(t *ptracer.Tracee, sig syscall.Signal, info *ptracer.Siginfo) ptracer.Verdict {
	v := s.place(t, sig, info)
	if th := s.of(t); v == ptracer.Deliver && !s.keeps(th, sig) {
		s.drain(th)
		th.framed(sig)
		return s.base.Signal(t, sig, info)
	}
	return v
}

// framed notes that a thread gets a frame of a signal, if it is one whose own mask the frames of before the recording
// may say (CHECK_RETURN).
func (th *thread) framed(sig syscall.Signal) {
	if th.slot == nil || th.slot.Inherited == 0 || sig == syscall.SIGSYS && th.files.of().Action[0] <= 1 {
		return // 0 and 1 are no handlers
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(th.t.PID) + "/status")
	if err == nil && statusNumber(status, "SigCgt:", 16)&signalBit(sig) != 0 {
		th.slot.Frames++
	}
}

// keeps reports whether a thread that is in our code has a signal blocked until it leaves (pend).
func (s *session) keeps(th *thread, sig syscall.Signal) bool {
	if th.slot == nil || atomic.LoadUint64(&th.slot.Pending) == 0 {
		return false
	}
	mask, err := signalMask(th.t.TID)
	return err == nil && mask&signalBit(sig) != 0
}

// place readies a thread for a signal. A program's handler must never
// run within our code: a thread that is there is first brought back to before its call or
// behind it.
func (s *session) place(t *ptracer.Tracee, sig syscall.Signal, info *ptracer.Siginfo) ptracer.Verdict {
	th := s.of(t)
	if th.space == nil {
		return ptracer.Deliver
	}
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(t.TID, &regs) != nil {
		return ptracer.Deliver
	}
	sp := th.space
	off := regs.Rip - sp.arena.base
	switch {
	case (sig == syscall.SIGSEGV || sig == syscall.SIGBUS) && info.Code > 0:
		if v, ours := s.fault(th, &regs, info); ours {
			return v
		}
	case sig == syscall.SIGTRAP && sp.patching(regs.Rip-1):
		regs.Rip-- // it met a place that was being patched
		_ = unix.PtraceSetRegs(t.TID, &regs)
		return ptracer.Swallow
	case sig == syscall.SIGTRAP && off == s.code.unarmed && th.slot != nil:
		return s.unarmed(th, &regs)
	}
	if off < codeBytes && th.slot != nil {
		if off < stubsAt {
			return s.inside(th, &regs, off, sig)
		}
	}
	if start, place := sp.startOf(regs.Rip), th.place; start != 0 || place != 0 && regs.Rip == place {
		if regs.Rip == place { // the call that the tracer is to see has not begun
			th.t.CancelStopAtCall()
			s.back(th)
			_ = unix.PtraceGetRegs(t.TID, &regs)
		}
		if start != 0 {
			regs.Rip = start
		}
		_ = unix.PtraceSetRegs(t.TID, &regs)
	}
	return ptracer.Deliver
}

// unmapped is told of a thread that cannot read its next instruction. If that is ours the program has taken our code
// away: the thread goes on in its program, and the calls of its process all stop from now on. It returns false if the
// instruction is not ours, or where the thread has to go on is not known.
func (s *session) unmapped(th *thread, regs *unix.PtraceRegs) bool {
	const why = "it changes the memory of its recording"
	sp, c := th.space, s.code
	off := regs.Rip - sp.arena.base
	site := sp.siteAt(regs.Rip)
	switch {
	case site != 0 && regs.Rip-sp.stubOf(regs.Rip) == uint64(len(syscallBytes)): // it has made its call there
		s.leaveFast(th, why)
		regs.Rip = site + uint64(len(syscallBytes))
	case site != 0:
		n := uint64(len(sp.moved[site])) // before it is forgotten
		if regs.Rip-sp.stubOf(regs.Rip) != stubEntry {
			n = 0 // that instruction has been executed
		}
		s.leaveFast(th, why)
		regs.Rip = site - n
	case off == c.gateEnd && th.slot != nil: // its call took our code away, or another thread's did meanwhile
		s.leaveFast(th, why)
		s.justReturned(th, regs)
	case off == c.passEnd && th.slot != nil:
		s.leaveFast(th, why)
		s.flags(th.slot, regs)
		regs.Rip, regs.Rcx = th.slot.Ret, th.slot.Ret
		s.outside(th)
	default:
		return false
	}
	sp.torn = true
	_ = unix.PtraceSetRegs(th.t.TID, regs)
	return true
}

// fault decides about a fault. It is ours if our code, or the way to it, made it.
func (s *session) fault(th *thread, regs *unix.PtraceRegs, info *ptracer.Siginfo) (v ptracer.Verdict, ours bool) {
	sp, c := th.space, s.code
	if info.Address() == regs.Rip && s.unmapped(th, regs) {
		return ptracer.Swallow, true
	}
	off := regs.Rip - sp.arena.base
	if off >= c.userBegin && off < c.userEnd {
		regs.Rip = sp.addr(c.userFault) // memory of the program's that is not there
		_ = unix.PtraceSetRegs(th.t.TID, regs)
		return ptracer.Swallow, true
	}
	if stub := sp.stubOf(regs.Rip); stub != 0 && regs.Rcx == stub { // the way to our code is not there
		if th.hasSlot(regs) {
			s.giveUp(th)
		} else {
			s.leaveFast(th, "it uses the register GS")
		}
		s.trace(th, regs, stub)
		return ptracer.Swallow, true
	}
	if off < stubsAt && th.slot != nil { // the program wrote over its slot: what it held is lost
		s.giveUp(th)
		return ptracer.Deliver, true
	}
	return ptracer.Deliver, false
}

// inside decides about a signal to a thread that is in our code.
func (s *session) inside(th *thread, regs *unix.PtraceRegs, off uint64, sig syscall.Signal) ptracer.Verdict {
	c, sl := s.code, th.slot
	switch {
	case off >= c.settle && off < c.gatesEnd: // the program has not begun
		return ptracer.Deliver
	case off < c.commonSaved:
		regs.Rip = th.space.siteBefore(regs.Rcx)
		s.outside(th)
	case c.unmade(off):
		if sl.Given != 0 && off > c.call && off <= c.gate {
			s.arguments(sl, regs)
		}
		regs.Rax, regs.Rdx, regs.Rip = sl.NR, sl.Args[2], sl.Ret-2
		if off > c.flagsSaved {
			s.flags(sl, regs)
		}
		s.unlock(th)
		s.outside(th)
	case off == c.gateEnd && sl.putsRight():
		s.pend(th, sig)
		return ptracer.Deliver
	case off == c.gateEnd: // it has returned; if it is to be restarted, the kernel does that next
		s.justReturned(th, regs)
	case off >= c.passEnd && off < c.passDone:
		if off > c.passEnd {
			regs.Rax = uint64(sl.Result)
		}
		s.flags(sl, regs)
		regs.Rip, regs.Rcx = sl.Ret, sl.Ret
		s.outside(th)
	case off >= c.pendingChecked && off < c.restoreEnd:
		s.returned(th, regs)
	case off >= c.checkDone && off < c.gatesEnd && off < c.checkEnd:
		s.unmade(th, regs)
	default:
		s.pend(th, sig)
		return ptracer.Deliver // which the kernel does when it is not blocked any more
	}
	_ = unix.PtraceSetRegs(th.t.TID, regs)
	return ptracer.Deliver
}

// unmade reports whether a thread that is at an offset has not made its call, and holds the arguments in its
// registers.
func (c *code) unmade(off uint64) bool {
	return off <= c.gate || off >= c.check && off <= c.checking || off >= c.pass && off <= c.passGate ||
		off >= c.tracedWay && off <= c.raw
}

// justReturned brings a thread behind its call, which has returned, and records it.
func (s *session) justReturned(th *thread, regs *unix.PtraceRegs) {
	sl := th.slot
	s.recordReturned(th, bpf.Now(), int64(regs.Rax))
	s.arguments(sl, regs)
	regs.Rip, regs.Rcx = sl.Ret, sl.Ret
	s.outside(th)
}

// siteBefore returns the place of a call, by what common finds in rcx: the stub, or what is behind the place.
func (sp *space) siteBefore(rcx uint64) uint64 {
	if sp.stubOf(rcx) == rcx {
		return sp.siteOf(rcx)
	}
	return rcx - 2
}

// putsRight reports whether what the program is to see is still to be put right when its call has returned.
func (s *slot) putsRight() bool {
	return s.NR == unix.SYS_RT_SIGPROCMASK || s.NR == unix.SYS_RT_SIGACTION
}
