// SPDX-License-Identifier: Apache-2.0

package ptracer

import "golang.org/x/sys/unix"

func setFirstArgument(t *Tracee, to uint64, compat bool) {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(t.TID, &regs) != nil {
		return
	}
	if compat {
		regs.Rbx = to
	} else {
		regs.Rdi = to
	}
	_ = unix.PtraceSetRegs(t.TID, &regs)
}

// restoreFirstArgument is for a call that has returned: it leaves its arguments' registers as they are.
func restoreFirstArgument(t *Tracee, to uint64, compat bool) { setFirstArgument(t, to, compat) }
