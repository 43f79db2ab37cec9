// SPDX-License-Identifier: Apache-2.0

package unwind

import "encoding/binary"

// Limits of an expression.
const (
	maxExprStack = 64
	maxExprSteps = 1024
)

// evaluator evaluates DWARF expressions as call frame information has them: those of PLT
// entries, of signal frames, and of functions that align their stack.
type evaluator struct {
	regs  *Registers
	mem   Memory
	stack []uint64
	ok    bool
}

// evaluate returns the value of an expression. start is what is on its stack first.
func evaluate(expr []byte, regs *Registers, pcReg int, mem Memory, start ...uint64) (uint64, bool) {
	e := evaluator{regs: regs, mem: mem, stack: start, ok: true}
	c := &cursor{b: expr}
	for n := 0; c.off < uint64(len(c.b)); n++ {
		if n == maxExprSteps {
			return 0, false
		}
		if op := c.u8(); !e.step(op, c, pcReg) || c.bad || !e.ok {
			return 0, false
		}
	}
	v := e.pop()
	return v, e.ok
}

func (e *evaluator) push(v uint64) {
	if len(e.stack) >= maxExprStack {
		e.ok = false
		return
	}
	e.stack = append(e.stack, v)
}

func (e *evaluator) pop() uint64 {
	if len(e.stack) == 0 {
		e.ok = false
		return 0
	}
	v := e.stack[len(e.stack)-1]
	e.stack = e.stack[:len(e.stack)-1]
	return v
}

// The operations (DWARF 5, 7.7.1).
const (
	opAddr   = 0x03
	opDeref  = 0x06
	opConst1 = 0x08 // to opConsts, in pairs of unsigned and signed
	opConsts = 0x11
	opDup    = 0x12
	opDrop   = 0x13
	opOver   = 0x14
	opSwap   = 0x16
	opAnd    = 0x1a
	opMinus  = 0x1c
	opMul    = 0x1e
	opNeg    = 0x1f
	opOr     = 0x21
	opPlus   = 0x22
	opPlusU  = 0x23
	opShl    = 0x24
	opShr    = 0x25
	opEq     = 0x29
	opGe     = 0x2a
	opGt     = 0x2b
	opLe     = 0x2c
	opLt     = 0x2d
	opNe     = 0x2e
	opLit0   = 0x30
	opBreg0  = 0x70
	opBreg31 = 0x8f
	opBregx  = 0x92
	opDerefN = 0x94
	opNop    = 0x96
)

// step does one operation. It returns false for one that it does not know.
func (e *evaluator) step(op byte, c *cursor, pcReg int) bool {
	switch {
	case op >= opLit0 && op < opLit0+32:
		e.push(uint64(op - opLit0))
	case op >= opBreg0 && op <= opBreg31:
		e.register(int(op-opBreg0), c.sleb(), pcReg)
	case op == opBregx:
		n := register(c)
		e.register(n, c.sleb(), pcReg)
	case op == opAddr:
		e.push(c.u64())
	case op >= opConst1 && op <= opConsts:
		e.push(constant(op, c))
	case op == opDeref:
		e.load(8)
	case op == opDerefN:
		e.load(c.u8())
	case op == opPlusU:
		e.push(e.pop() + c.uleb())
	case op == opNop:
	default:
		return e.arithmetic(op)
	}
	return true
}

func constant(op byte, c *cursor) uint64 {
	switch op - opConst1 {
	case 0:
		return uint64(c.u8())
	case 1:
		return uint64(int8(c.u8()))
	case 2:
		return uint64(c.u16())
	case 3:
		return uint64(int16(c.u16()))
	case 4:
		return uint64(c.u32())
	case 5:
		return uint64(int32(c.u32()))
	case 6, 7:
		return c.u64()
	case 8:
		return c.uleb()
	}
	return uint64(c.sleb())
}

func (e *evaluator) register(n int, off int64, pcReg int) {
	v, ok := e.regs.get(n)
	if n == pcReg {
		v, ok = e.regs.PC, true
	}
	e.ok = e.ok && ok
	e.push(v + uint64(off))
}

func (e *evaluator) load(size byte) {
	var b [8]byte
	if size > 8 || !e.mem.Read(e.pop(), b[:size]) {
		e.ok = false
	}
	e.push(binary.LittleEndian.Uint64(b[:]))
}

func (e *evaluator) arithmetic(op byte) bool {
	switch op {
	case opDup:
		v := e.pop()
		e.push(v)
		e.push(v)
		return true
	case opDrop:
		e.pop()
		return true
	case opNeg:
		e.push(-e.pop())
		return true
	}
	b, a := e.pop(), e.pop()
	switch op {
	case opOver:
		e.push(a)
		e.push(b)
		e.push(a)
	case opSwap:
		e.push(b)
		e.push(a)
	case opAnd:
		e.push(a & b)
	case opMinus:
		e.push(a - b)
	case opMul:
		e.push(a * b)
	case opOr:
		e.push(a | b)
	case opPlus:
		e.push(a + b)
	case opShl:
		e.push(a << min(b, 64))
	case opShr:
		e.push(a >> min(b, 64))
	default:
		holds, known := compare(op, int64(a), int64(b))
		v := uint64(0)
		if holds {
			v = 1
		}
		e.push(v)
		return known
	}
	return true
}

func compare(op byte, a, b int64) (holds, known bool) {
	switch op {
	case opEq:
		return a == b, true
	case opGe:
		return a >= b, true
	case opGt:
		return a > b, true
	case opLe:
		return a <= b, true
	case opLt:
		return a < b, true
	case opNe:
		return a != b, true
	}
	return false, false
}
