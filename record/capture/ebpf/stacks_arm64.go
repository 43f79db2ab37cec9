// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"

	"github.com/iotape/iotape/internal/unwind"
)

// rawRegisters reads a struct user_pt_regs.
func rawRegisters(b []byte) (r unwind.Registers, sp uint64) {
	at := func(n int) uint64 { return binary.LittleEndian.Uint64(b[8*n:]) }
	for n := range 32 {
		r.Set(n, at(n))
	}
	r.PC = at(32)
	return r, at(31)
}
