// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nativeArch is the AUDIT_ARCH of the recorder (linux/audit.h).
func nativeArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// syscallInfo is struct ptrace_syscall_info (linux/ptrace.h). At exit, nr holds
// the result.
type syscallInfo struct {
	op      uint8
	_       [3]byte
	arch    uint32
	_       [2]uint64 // instruction and stack pointer
	nr      uint64
	args    [6]uint64
	retData uint32
	_       uint32
}

func ptrace(request, tid int, addr, data uintptr) error {
	if _, _, e := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, data, 0, 0); e != 0 {
		return e
	}
	return nil
}

func eventMessage(tid int) (int, error) {
	var msg uintptr
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GETEVENTMSG, uintptr(tid), 0,
		uintptr(unsafe.Pointer(&msg)), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(msg), nil
}

func (i *syscallInfo) get(tid int) error {
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(*i),
		uintptr(unsafe.Pointer(i)), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

func (i *Siginfo) get(tid int) error {
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GETSIGINFO, uintptr(tid), 0,
		uintptr(unsafe.Pointer(i)), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// childInfo is the siginfo_t of waitid.
type childInfo struct {
	_        [2]int32
	code     int32
	_        int32
	pid, uid int32
	status   int32
	_        [100]byte
}

const cldTrapped = 4 // CLD_TRAPPED (asm-generic/siginfo.h)

// peek waits for a child as wait4 does, and leaves what it tells to be taken.
func (i *childInfo) peek(flags int) error {
	const all = 0 // P_ALL
	return i.waitid(all, 0, flags)
}

// peekOf waits for one.
func (i *childInfo) peekOf(tid int) error {
	const one = 1 // P_PID
	return i.waitid(one, tid, unix.WALL|unix.WNOTHREAD)
}

func (i *childInfo) waitid(kind, id, flags int) error {
	_, _, e := unix.Syscall6(unix.SYS_WAITID, uintptr(kind), uintptr(id), uintptr(unsafe.Pointer(i)),
		uintptr(flags|unix.WEXITED|unix.WNOWAIT), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

func (i *Siginfo) set(tid int) error {
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SETSIGINFO, uintptr(tid), 0,
		uintptr(unsafe.Pointer(i)), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}
