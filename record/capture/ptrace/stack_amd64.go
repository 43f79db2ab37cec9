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
	r.PC = p.Rip
	for n, v := range [...]uint64{p.Rax, p.Rdx, p.Rcx, p.Rbx, p.Rsi, p.Rdi, p.Rbp, p.Rsp, p.R8, p.R9, p.R10, p.R11,
		p.R12, p.R13, p.R14, p.R15} {
		r.Set(n, v)
	}
	return r, true
}
