// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An arena is the memory that the recorder shares with a program and the processes that are
// forked from it. In them it begins at base:
//
//	code and stubs  private, executable; in the shared file this part is empty
//	control         which they can only read
//	slots           a thread's state, and the stack of our code
//	files           a process's descriptors
//	rings           a thread's records
type arena struct {
	mem   []byte
	base  uint64
	slots [arenaSlots]bool // in use
	files [arenaSlots]bool
	refs  int
}

const (
	arenaSlots = 256
	ringBytes  = 1 << 20
	codeBytes  = 128 << 10
	filesBytes = (int(unsafe.Sizeof(files{})) + 4095) &^ 4095

	controlBytes = (int(unsafe.Sizeof(control{})) + 4095) &^ 4095
	slotsAt      = codeBytes + controlBytes
	filesAt      = slotsAt + arenaSlots*slotBytes
	ringsAt      = filesAt + arenaSlots*filesBytes
	arenaBytes   = ringsAt + arenaSlots*ringBytes

	stubsAt   = 16 << 10 // within the code
	stubBytes = 48

	// noThread is the slot of threads that have none, in truth: their calls are made in the stubs.
	noThread = arenaSlots - 1
)

// mapArena maps the memory of a file that a process has made, and makes room in it.
func mapArena(fd int) (*arena, error) {
	if err := unix.Ftruncate(fd, int64(arenaBytes)); err != nil {
		return nil, fmt.Errorf("size shared memory: %w", err)
	}
	mem, err := unix.Mmap(fd, 0, arenaBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map shared memory: %w", err)
	}
	return &arena{mem: mem, refs: 1}, nil
}

func (a *arena) release() {
	if a.refs--; a.refs == 0 {
		_ = unix.Munmap(a.mem)
		a.mem = nil
	}
}

func (a *arena) control() *control     { return at[control](a.mem, codeBytes) }
func (a *arena) slot(i int) *slot      { return at[slot](a.mem, slotsAt+i*slotBytes) }
func (a *arena) filesOf(i int) *files  { return at[files](a.mem, filesAt+i*filesBytes) }
func (a *arena) ring(i int) []byte     { return a.mem[ringsAt+i*ringBytes:][:ringBytes:ringBytes] }
func (a *arena) slotAddr(i int) uint64 { return a.base + uint64(slotsAt+i*slotBytes) }

// ready makes the slot of threads that have none. raw is where their stubs lead to.
func (a *arena) ready(raw uint64) {
	a.slots[noThread], a.files[noThread] = true, true
	*a.slot(noThread) = slot{
		Self: a.slotAddr(noThread), Entry: raw, Open: raw, Control: a.base + codeBytes,
		Files: a.base + uint64(filesAt+noThread*filesBytes),
	}
}

// takeFiles returns a table of descriptors of which none is known, -1 if there is none left.
func (a *arena) takeFiles() int {
	for i := range a.files {
		if !a.files[i] {
			a.files[i] = true
			f := a.filesOf(i)
			f.Generation, f.Shared, f.Left, f.Masking, f.Action = f.Generation+1, 0, 0, 0, [4]uint64{}
			f.Epoch, f.Moves, f.Asks = f.Epoch+1, f.Moves+1, 0
			return i
		}
	}
	return -1
}

// takeSlot returns a thread's slot, -1 if there is none left.
func (a *arena) takeSlot(pid, tid, files int, entry uint64) int {
	for i := range a.slots {
		if a.slots[i] {
			continue
		}
		a.slots[i] = true
		s := a.slot(i)
		*s = slot{
			Self: a.slotAddr(i), Control: a.base + codeBytes, Files: a.base + uint64(filesAt+files*filesBytes),
			Ring: a.base + uint64(ringsAt+i*ringBytes), RingBytes: ringBytes,
			PID: uint32(pid), TID: uint32(tid), Position: -1, Entry: entry, Open: entry,
		}
		return i
	}
	return -1
}
