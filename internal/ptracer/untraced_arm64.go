// SPDX-License-Identifier: Apache-2.0

package ptracer

import "golang.org/x/sys/unix"

const ntPrstatus = 1 // NT_PRSTATUS (linux/elf.h)

func setFirstArgument(t *Tracee, to uint64, _ bool) {
	var regs unix.PtraceRegsArm64
	if unix.PtraceGetRegSetArm64(t.TID, ntPrstatus, &regs) != nil {
		return
	}
	regs.Regs[0] = to
	_ = unix.PtraceSetRegSetArm64(t.TID, ntPrstatus, &regs)
}

// restoreFirstArgument does nothing: the result is in the register.
func restoreFirstArgument(*Tracee, uint64, bool) {}
