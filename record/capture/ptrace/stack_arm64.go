// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/unwind"
)

// registers returns those of a stopped thread.
func registers(tid int) (r unwind.Registers, ok bool) {
	var p unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &p) != nil {
		return r, false
	}
	r.PC = p.Pc
	for n, v := range p.Regs {
		r.Set(n, v)
	}
	r.Set(len(p.Regs), p.Sp)
	return r, true
}
