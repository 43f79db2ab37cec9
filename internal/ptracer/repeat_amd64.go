// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// repeat makes a thread that was stopped in a call make it again, if it would return EINTR for that alone.
// sig is what it is about to get, 0 for none. It reports whether it did.
func repeat(t *Tracee, sig syscall.Signal) bool {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(t.TID, &regs) != nil || int64(regs.Orig_rax) < 0 || int64(regs.Rax) != -int64(unix.EINTR) {
		return false
	}
	const native = 0x33 // of the code segment
	if !stopEndsCall(regs.Orig_rax) || regs.Cs != native || sees(t, sig) {
		return false
	}
	regs.Rax, regs.Orig_rax = regs.Orig_rax, ^uint64(0)
	regs.Rip -= 2 // the instruction
	return unix.PtraceSetRegs(t.TID, &regs) == nil
}

// again makes a thread that is at the begin of a call which can wait begin it once more, when it goes on.
func again(t *Tracee) {
	var regs unix.PtraceRegs
	const native = 0x33
	if unix.PtraceGetRegs(t.TID, &regs) != nil || !onlyWaits(regs.Orig_rax) || regs.Cs != native {
		return
	}
	regs.Rax, regs.Orig_rax = regs.Orig_rax, ^uint64(0)
	regs.Rip -= 2
	_ = unix.PtraceSetRegs(t.TID, &regs)
}

// onlyWaits are those of stopEndsCall that never do a part of what they are to do.
func onlyWaits(nr uint64) bool {
	switch nr {
	case unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
		unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_ACCEPT, unix.SYS_ACCEPT4:
		return true
	}
	return false
}

// sees reports whether a program handles a signal, or has others to handle that wait for the thread. The kernel
// forgets a signal that is ignored at once, but not for a thread that is traced.
func sees(t *Tracee, sig syscall.Signal) bool {
	id := strconv.Itoa(t.PID) + "/task/" + strconv.Itoa(t.TID)
	due := (statusSet(id, "SigPnd:") | statusSet(id, "ShdPnd:")) &^ statusSet(id, "SigBlk:")
	if due&statusSet(id, "SigCgt:") != 0 {
		return true
	}
	switch sig {
	case 0:
		return false
	case unix.SIGCHLD, unix.SIGURG, unix.SIGWINCH, unix.SIGCONT:
		return statusSet(id, "SigCgt:")>>(sig-1)&1 != 0
	}
	return statusSet(id, "SigIgn:")>>(sig-1)&1 == 0
}

// stopEndsCall are the calls that a stop can end with EINTR, though no signal is handled, and that did
// nothing then: signal(7), "Interruption of system calls and library functions by stop signals".
func stopEndsCall(nr uint64) bool {
	switch nr {
	case unix.SYS_READ, unix.SYS_READV, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_RECVFROM,
		unix.SYS_RECVMSG, unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
		unix.SYS_RECVMMSG, unix.SYS_SENDMMSG, unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2,
		unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_IO_GETEVENTS, unix.SYS_IO_PGETEVENTS,
		unix.SYS_IO_URING_ENTER:
		return true
	}
	return false
}
