// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture"
)

// Each thread with a slot sets its own Syscall User Dispatch, once, by a call that it makes in our code before it
// makes any of its program (arming in inproc/entry.S): a tracer can set it only since Linux 6.4. The kernel
// clears it at execve, and new threads have none. Afterwards the tracer lets single calls through by the thread's
// selector, which is in memory that the program can only read.

// selector says what is done with a thread's calls that are not made at our gates (linux/syscall_user_dispatch.h).
type selector uint8

const (
	selectAllow selector = iota // they are made
	selectBlock                 // they stop the thread
)

// probe reports what the kernel lacks. It asks for a selector where a program has no memory, which the kernel refuses
// before it changes anything.
func probe() error {
	const kernels = 1 << 63 // an address
	_, _, err := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_SYSCALL_USER_DISPATCH, unix.PR_SYS_DISPATCH_ON, 0, 0,
		kernels, 0)
	if err == unix.EFAULT {
		return nil
	}
	return &capture.UnsupportedError{Backend: name, Feature: "Syscall User Dispatch (Linux 5.11)", Reason: err}
}

// selects sets the selector of a thread that has a slot.
func (th *thread) selects(x selector) { th.space.arena.control().Selectors[th.index] = x }

// arm makes a thread that is stopped set its Syscall User Dispatch before it goes on with registers. One without a
// slot stops at each call instead, as one of a process that is recorded by stops.
func (s *session) arm(th *thread, regs *unix.PtraceRegs) {
	regs.Gs_base = th.space.arena.slotAddr(noThread)
	if th.slot != nil {
		regs.Gs_base = th.space.arena.slotAddr(th.index)
	}
	if th.slot == nil || th.space.gone {
		_ = unix.PtraceSetRegs(th.t.TID, regs)
		return
	}
	th.selects(selectBlock)
	th.armed = true
	s.switches(th, regs, s.dispatchOf(th))
}

// disarm ends a thread's Syscall User Dispatch before it goes on with registers. It is stopped, and about to
// make a call at regs.Rip.
func (s *session) disarm(th *thread, regs *unix.PtraceRegs) {
	th.armed = false
	s.switches(th, regs, dispatch{})
}

// switches makes a thread set its Syscall User Dispatch in our code before it goes on with registers.
func (s *session) switches(th *thread, regs *unix.PtraceRegs, d dispatch) {
	const overflow = 11 // in the flags
	sl, sp := th.slot, th.space
	sl.Args = [...]uint64{regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9}
	sl.Result, sl.Ret, sl.RSP, sl.Given = int64(regs.Rax), regs.Rip, regs.Rsp, 0
	sl.Pending, sl.Locked = 0, 0 // the program may have written over them
	sl.Flags = regs.Eflags<<8&0xff00 | regs.Eflags>>overflow&1
	sl.Entry = sp.addr(s.code.raw)
	own := *regs
	own.Orig_rax, own.Rip = ^uint64(0), sp.addr(s.code.arming)
	set(&own, d)
	_ = unix.PtraceSetRegs(th.t.TID, &own)
}

// dispatch is what Syscall User Dispatch lets through: calls within a range of addresses, and all calls while the
// selector says so, if there is one. The zero value stands for none.
type dispatch struct {
	from, bytes, selector uint64
}

// dispatchOf is that of a thread with a slot.
func (s *session) dispatchOf(th *thread) dispatch {
	a := th.space.arena
	return dispatch{from: a.base, bytes: s.code.gatesEnd, selector: a.base + codeBytes + uint64(th.index)}
}

// set makes registers those of the call that sets a thread's Syscall User Dispatch.
func set(regs *unix.PtraceRegs, d dispatch) {
	regs.Rax, regs.Rdi, regs.Rsi = unix.SYS_PRCTL, unix.PR_SET_SYSCALL_USER_DISPATCH, unix.PR_SYS_DISPATCH_ON
	regs.Rdx, regs.R10, regs.R8 = d.from, d.bytes, d.selector
	if d.bytes == 0 {
		regs.Rsi = unix.PR_SYS_DISPATCH_OFF
	}
}

// unarmed is told that the kernel refuses a thread what arm asked for: its process goes on with stops.
func (s *session) unarmed(th *thread, regs *unix.PtraceRegs) ptracer.Verdict {
	th.armed = false
	th.selects(selectAllow)
	regs.Orig_rax = ^uint64(0)
	s.returned(th, regs)
	s.unpend(th)
	_ = unix.PtraceSetRegs(th.t.TID, regs)
	s.leaveFast(th, errRefused.Error())
	return ptracer.Swallow
}

// showAction is told that a call has returned. It puts right what a program of which all calls stop has been told of
// the action of SIGSYS: the one that it asked for, not ours, which the kernel keeps.
func (s *session) showAction(th *thread, ret int64) {
	sp, at := th.space, th.args[2]
	if th.nr != unix.SYS_RT_SIGACTION || th.args[0] != uint64(unix.SIGSYS) || ret != 0 || at == 0 {
		return
	}
	if sp == nil || !sp.gone || th.files == nil {
		return
	}
	was := th.files.of().Action
	b := unsafe.Slice((*byte)(unsafe.Pointer(&was)), unsafe.Sizeof(was))
	old := make([]byte, len(b))
	if sp.read(old, at) && binary.LittleEndian.Uint64(old) == sp.addr(s.code.symbols["orphan"]) {
		sp.write(b, at)
	}
}

// disarmed makes a thread, which is at the entry of a call, end its Syscall User Dispatch and make the call again.
// It returns false if there is nothing to end.
func (s *session) disarmed(th *thread) bool {
	var regs unix.PtraceRegs
	if !th.armed || unix.PtraceGetRegs(th.t.TID, &regs) != nil || !th.hasSlot(&regs) {
		return false
	}
	regs.Rip -= uint64(len(syscallBytes))
	if site := th.space.siteAt(regs.Rip); site != 0 && th.space.gone {
		regs.Rip = site // as it was before: the call may be about to unmap the stub
	}
	regs.Rax = regs.Orig_rax
	th.place = 0
	s.disarm(th, &regs)
	return true
}

// arms reports whether a call is that of switches.
func (s *session) arms(th *thread, c *ptracer.Syscall) bool {
	var regs unix.PtraceRegs
	return c.NR == unix.SYS_PRCTL && c.Args[0] == unix.PR_SET_SYSCALL_USER_DISPATCH && th.slot != nil &&
		unix.PtraceGetRegs(th.t.TID, &regs) == nil &&
		regs.Rip == th.space.addr(s.code.arming)+uint64(len(syscallBytes))
}

// hasSlot reports whether our code in a thread finds its slot.
func (th *thread) hasSlot(regs *unix.PtraceRegs) bool {
	return th.slot != nil && regs.Gs_base == th.space.arena.slotAddr(th.index)
}
