// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"

	"github.com/iotape/iotape/internal/unwind"
)

// rawRegisters reads a struct pt_regs.
func rawRegisters(b []byte) (r unwind.Registers, sp uint64) {
	at := func(n int) uint64 { return binary.LittleEndian.Uint64(b[8*n:]) }
	r.PC, sp = at(16), at(19)
	// ax, dx, cx, bx, si, di, bp, sp, r8 to r15
	for n, place := range [...]int{10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0} {
		r.Set(n, at(place))
	}
	return r, sp
}
