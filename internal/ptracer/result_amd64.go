// SPDX-License-Identifier: Apache-2.0

package ptracer

import "golang.org/x/sys/unix"

// stopAtEnd makes threads stop when they begin to end, for Result.
const stopAtEnd = unix.PTRACE_O_TRACEEXIT

// Result returns what the call returned, -errno on failure, in which a thread was that is dying (Handler.Dying); ok =
// false if the call was cut short before it did anything, or did not begin, or there was none.
func (t *Tracee) Result() (ret int64, ok bool) {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(t.TID, &regs) != nil || int64(regs.Orig_rax) < 0 {
		return 0, false
	}
	ret = int64(regs.Rax)
	const native = 0x33 // of the code segment
	if regs.Cs != native {
		ret = int64(int32(ret))
	}
	return ret, !cutShort(ret)
}

// cutShort reports whether a result is that of a call that a signal ended before it did anything. ENOSYS is in the
// register before a call begins, and EINTR comes of calls that can wait; those from 512 to 516 are the kernel's for
// calls that are to be made again (linux/errno.h).
func cutShort(ret int64) bool {
	return ret == -int64(unix.ENOSYS) || ret == -int64(unix.EINTR) || ret <= -restartSys && ret >= -restartSys-4
}
