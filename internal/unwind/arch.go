// SPDX-License-Identifier: Apache-2.0

package unwind

import "debug/elf"

// numRegisters is how many registers a frame has at most, by DWARF's numbers.
const numRegisters = 33

// Arch says which registers of an architecture have a part in calls, by DWARF's numbers.
type Arch struct {
	machine elf.Machine
	sp, fp  int
	ra      int  // return address
	linked  bool // a call leaves the return address in a register, not on the stack
}

// The architectures.
var (
	AMD64 = &Arch{machine: elf.EM_X86_64, sp: 7, fp: 6, ra: 16}
	ARM64 = &Arch{machine: elf.EM_AARCH64, sp: 31, fp: 29, ra: 30, linked: true}
)

// ArchOf returns the architecture by its GOARCH name, nil if it is not known.
func ArchOf(goarch string) *Arch {
	switch goarch {
	case "amd64":
		return AMD64
	case "arm64":
		return ARM64
	}
	return nil
}

// addressMask removes from a return address what pointer authentication put into it.
func (a *Arch) addressMask() uint64 {
	if a.linked {
		return 1<<48 - 1
	}
	return ^uint64(0)
}

// Registers are those of a thread, by DWARF's numbers. Which are known is a bit each.
type Registers struct {
	PC    uint64
	R     [numRegisters]uint64
	known uint64
}

// Set sets a register.
func (r *Registers) Set(n int, v uint64) {
	if n >= 0 && n < numRegisters {
		r.R[n], r.known = v, r.known|1<<n
	}
}

func (r *Registers) get(n int) (v uint64, ok bool) {
	if n < 0 || n >= numRegisters || r.known>>n&1 == 0 {
		return 0, false
	}
	return r.R[n], true
}
