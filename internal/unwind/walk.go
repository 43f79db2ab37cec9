// SPDX-License-Identifier: Apache-2.0

package unwind

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
)

// Memory is that of the thread.
type Memory interface {
	// Read fills b with the bytes at an address, all of them, or returns false.
	Read(addr uint64, b []byte) bool
}

// MaxFrames is the most frames of a stack.
const MaxFrames = 512

// walker is one walk.
type walker struct {
	s     *Space
	arch  *Arch
	mem   Memory
	regs  Registers
	exact bool // PC is where the thread is, not behind a call
	first bool
}

// Walk returns the frames of a thread, the innermost first, at most max (0: MaxFrames), and why
// the stack ends there.
func (s *Space) Walk(arch *Arch, regs *Registers, mem Memory, max int) ([]event.Frame, event.StackEnd) {
	if max <= 0 || max > MaxFrames {
		max = MaxFrames
	}
	w := walker{s: s, arch: arch, mem: mem, regs: *regs, first: true}
	var frames []event.Frame
	for {
		if w.regs.PC == 0 && len(frames) > 0 {
			return frames, event.StackComplete
		}
		if len(frames) == max {
			return frames, event.StackLimit
		}
		m := s.find(w.at())
		frames = append(frames, s.frame(m, w.regs.PC, w.exact))
		if m == nil || m.Ino == 0 && m.Path != vdsoPath {
			return frames, event.StackUnknown
		}
		if end, ok := w.up(m); !ok {
			return frames, end
		}
		w.first = false
	}
}

// at is an address within the instruction that the frame is in.
func (w *walker) at() uint64 {
	if w.exact || w.regs.PC == 0 {
		return w.regs.PC
	}
	return w.regs.PC - 1
}

// up goes to the caller.
func (w *walker) up(m *Mapping) (end event.StackEnd, ok bool) {
	mod := w.s.module(m)
	if mod == nil || mod.machine != w.arch.machine {
		return event.StackUnreadable, false
	}
	addr, ok := mod.address(w.at() - m.Start + m.Off)
	if ok {
		for _, t := range mod.frames {
			if f := t.find(addr); f != nil {
				return w.byTable(t, f, addr)
			}
		}
	}
	if mod.golang && w.first && !w.arch.linked {
		return w.byLeaf()
	}
	return w.byFramePointer(mod)
}

// byTable goes to the caller by call frame information.
func (w *walker) byTable(t *frameTable, f *fde, addr uint64) (end event.StackEnd, ok bool) {
	r, err := t.row(f, addr)
	if err != nil {
		return event.StackBroken, false
	}
	pcReg := -1
	if !w.arch.linked {
		pcReg = w.arch.ra
	}
	var cfa uint64
	if r.cfaExpr != nil {
		cfa, ok = evaluate(r.cfaExpr, &w.regs, pcReg, w.mem)
	} else if cfa, ok = w.regs.get(r.cfaReg); ok {
		cfa += uint64(r.cfaOff)
	}
	if !ok {
		return event.StackMemory, false
	}
	ci := &t.cies[f.cie]
	next := w.regs
	for n := range r.rules {
		if rl := &r.rules[n]; rl.set && !w.apply(&next, n, rl, cfa, pcReg) && n == ci.ra {
			return event.StackMemory, false
		}
	}
	ra, known := next.get(ci.ra)
	if rl := &r.rules[ci.ra]; rl.kind == ruleUndefined || !known || !rl.set && !w.arch.linked {
		return event.StackComplete, false
	}
	if s := &r.rules[w.arch.sp]; !s.set {
		next.Set(w.arch.sp, cfa)
	}
	next.PC = ra & w.arch.addressMask()
	sp, _ := next.get(w.arch.sp)
	old, _ := w.regs.get(w.arch.sp)
	// A stack gets no longer except where a handler returns to another one. A function that has nothing on it has
	// its return address in a register.
	if !ci.signal && (sp < old || sp == old && next.PC == w.regs.PC) {
		return event.StackBroken, false
	}
	w.regs, w.exact = next, ci.signal
	return 0, true
}

// apply sets a register of the caller.
func (w *walker) apply(next *Registers, n int, rl *rule, cfa uint64, pcReg int) bool {
	v, ok := uint64(0), false
	switch rl.kind {
	case ruleSame:
		return true
	case ruleUndefined:
		next.known &^= 1 << n
		return true
	case ruleOffset:
		v, ok = w.load(cfa + uint64(rl.n))
	case ruleValOffset:
		v, ok = cfa+uint64(rl.n), true
	case ruleRegister:
		v, ok = w.regs.get(int(rl.n))
	case ruleExpr:
		if v, ok = evaluate(rl.expr, &w.regs, pcReg, w.mem, cfa); ok {
			v, ok = w.load(v)
		}
	case ruleValExpr:
		v, ok = evaluate(rl.expr, &w.regs, pcReg, w.mem, cfa)
	}
	if !ok {
		next.known &^= 1 << n
		return false
	}
	next.Set(n, v)
	return true
}

func (w *walker) load(addr uint64) (uint64, bool) {
	var b [8]byte
	ok := w.mem.Read(addr, b[:])
	return binary.LittleEndian.Uint64(b[:]), ok
}

// byLeaf goes to the caller of a function that has no frame, as those of Go's runtime that make
// calls: the return address is where the stack pointer is.
func (w *walker) byLeaf() (end event.StackEnd, ok bool) {
	sp, known := w.regs.get(w.arch.sp)
	if !known {
		return event.StackMemory, false
	}
	ra, ok := w.load(sp)
	if !ok {
		return event.StackMemory, false
	}
	if !w.s.executable(ra) {
		return event.StackBroken, false
	}
	w.regs.PC, w.exact = ra, false
	w.regs.Set(w.arch.sp, sp+8)
	return 0, true
}

// byFramePointer goes to the caller by the frame pointer, as the x86-64 and the arm64 ABI have it.
// A return address is believed only if the call before it leads to where the frame is: code without frame
// pointers, such as that of musl, has anything in the register.
func (w *walker) byFramePointer(mod *Module) (end event.StackEnd, ok bool) {
	fp, known := w.regs.get(w.arch.fp)
	sp, _ := w.regs.get(w.arch.sp)
	if known && fp == 0 { // as the kernel starts programs
		return event.StackComplete, false
	}
	if !known || fp < sp || fp%8 != 0 {
		return event.StackBroken, false
	}
	before, ok1 := w.load(fp)
	ra, ok2 := w.load(fp + 8)
	if !ok1 || !ok2 {
		return event.StackMemory, false
	}
	ra &= w.arch.addressMask()
	if ra == 0 {
		return event.StackComplete, false
	}
	if !w.s.executable(ra-1) || !mod.golang && !w.calls(ra) {
		return event.StackBroken, false
	}
	w.regs.PC, w.exact = ra, false
	w.regs.Set(w.arch.fp, before)
	w.regs.Set(w.arch.sp, fp+16)
	return 0, true
}

// calls reports whether the instruction before a return address can have called the function that the frame
// is in. It can if it says no address, or one of a table of jumps (PLT), or one from which no other function
// begins up to the frame.
func (w *walker) calls(ra uint64) bool {
	target, direct, ok := w.callBefore(ra)
	if !ok {
		return w.returnsFromSignal(ra)
	}
	if !direct {
		return true
	}
	m, at := w.s.find(target), w.at()
	if m == nil {
		return false
	}
	mod := w.s.module(m)
	if mod == nil {
		return false
	}
	addr, ok := mod.address(target - m.Start + m.Off)
	if !ok {
		return false
	}
	for _, t := range mod.frames {
		if f := t.find(addr); f != nil {
			r, err := t.row(f, addr)
			return err == nil && r.cfaExpr != nil // as only that of a table of jumps has at its beginning
		}
	}
	const longest = 16 << 20 // function
	if at < target || at-target > longest {
		return false
	}
	end := addr + (at - target)
	for _, t := range mod.frames {
		if t.begins(addr, end) {
			return false
		}
	}
	return true
}

// returnsFromSignal reports whether the code at an address ends a signal's handler: nothing called that.
func (w *walker) returnsFromSignal(ra uint64) bool {
	m := w.s.find(ra)
	if m == nil {
		return false
	}
	mod := w.s.module(m)
	if mod == nil {
		return false
	}
	addr, ok := mod.address(ra - m.Start + m.Off)
	for _, t := range mod.frames {
		if f := t.find(addr); ok && f != nil {
			return t.cies[f.cie].signal
		}
	}
	return false
}

// callBefore reads the call before a return address.
func (w *walker) callBefore(ra uint64) (target uint64, direct, ok bool) {
	var b [7]byte
	if w.arch.linked {
		if !w.s.code(ra-4, b[:4]) {
			return 0, false, false
		}
		n := binary.LittleEndian.Uint32(b[:])
		if n>>26 == 0x25 { // bl
			return ra - 4 + uint64(int64(int32(n<<6))>>4), true, true
		}
		return 0, false, n&0xfffffc1f == 0xd63f0000 // blr
	}
	if !w.s.code(ra-7, b[:]) {
		return 0, false, false
	}
	if b[2] == 0xe8 { // call rel32
		return ra + uint64(int64(int32(binary.LittleEndian.Uint32(b[3:])))), true, true
	}
	for n := range 6 { // call r/m64, of 2 to 7 bytes
		if b[n] == 0xff && b[n+1]>>3&7 == 2 {
			return 0, false, true
		}
	}
	return 0, false, false
}
