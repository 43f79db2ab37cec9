// SPDX-License-Identifier: Apache-2.0

package unwind

import (
	"encoding/binary"
	"errors"
	"slices"
	"sort"
)

var errCFI = errors.New("call frame information is damaged")

// Limits of call frame information.
const (
	maxFDEs     = 1 << 22
	maxCIEs     = 1 << 16
	maxRemember = 32
)

// frameTable is the call frame information of a file.
type frameTable struct {
	data    []byte // of the section
	addr    uint64 // of the section
	debug   bool   // .debug_frame
	cies    []cie
	entries []fde // by start
}

// cie is what several functions share.
type cie struct {
	codeAlign uint64
	dataAlign int64
	ra        int
	encoding  byte // of addresses in FDEs
	sized     bool // FDEs have augmentation data
	signal    bool
	program   []byte
}

// fde is the information of one function.
type fde struct {
	start, end uint64
	cie        uint32
	off, size  uint32 // of its program, in data
}

// parseFrames makes the table of a section. What is damaged in it ends it.
func parseFrames(data []byte, addr uint64, debug bool) *frameTable {
	t := &frameTable{data: data, addr: addr, debug: debug}
	byOffset := map[uint64]int{}
	for off := uint64(0); off < uint64(len(data)) && len(t.entries) < maxFDEs; {
		c := cursor{b: data, off: off}
		length := uint64(c.u32())
		wide := length == 0xffffffff
		if wide {
			length = c.u64()
		}
		if c.bad || length == 0 && !debug {
			break
		}
		body := c.off
		if length > uint64(len(data))-body {
			break
		}
		end := body + length
		c.b = data[:end]
		t.entry(&c, off, body, wide, byOffset)
		off = end
	}
	slices.SortFunc(t.entries, func(a, b fde) int {
		switch {
		case a.start < b.start:
			return -1
		case a.start > b.start:
			return 1
		}
		return 0
	})
	return t
}

// entry takes an entry of the section; a common one is remembered by its offset.
func (t *frameTable) entry(c *cursor, off, body uint64, wide bool, byOffset map[uint64]int) {
	var id uint64
	if wide && t.debug {
		id = c.u64()
	} else if id = uint64(c.u32()); t.debug && id == 0xffffffff {
		id = ^uint64(0)
	}
	if c.bad {
		return
	}
	if t.debug && id == ^uint64(0) || !t.debug && id == 0 {
		t.common(c, off, byOffset)
		return
	}
	at := id
	if !t.debug {
		at = body - id
	}
	n, ok := byOffset[at]
	if !ok {
		if at >= uint64(len(t.data)) { // behind it is allowed in .debug_frame, but nobody writes that
			return
		}
		return
	}
	ci := &t.cies[n]
	start := t.address(c, ci.encoding)
	size := t.address(c, ci.encoding&0x0f)
	if ci.sized {
		c.skip(c.uleb())
	}
	if c.bad || size == 0 || start+size < start {
		return
	}
	t.entries = append(t.entries, fde{start: start, end: start + size, cie: uint32(n), off: uint32(c.off),
		size: uint32(uint64(len(c.b)) - c.off)})
}

// common takes a CIE.
func (t *frameTable) common(c *cursor, off uint64, byOffset map[uint64]int) {
	if len(t.cies) >= maxCIEs {
		return
	}
	version := c.u8()
	aug := c.cstring()
	ci := cie{}
	if version >= 4 {
		if size, seg := c.u8(), c.u8(); size != 8 || seg != 0 {
			return
		}
	}
	ci.codeAlign, ci.dataAlign = c.uleb(), c.sleb()
	if version == 1 {
		ci.ra = int(c.u8())
	} else {
		ci.ra = int(min(c.uleb(), numRegisters))
	}
	if len(aug) > 0 && !t.augmentation(&ci, c, aug) {
		return
	}
	if c.bad || ci.ra >= numRegisters {
		return
	}
	ci.program = c.b[c.off:]
	byOffset[off] = len(t.cies)
	t.cies = append(t.cies, ci)
}

// augmentation takes the data that the letters of an augmentation stand for.
func (t *frameTable) augmentation(ci *cie, c *cursor, aug string) bool {
	if aug[0] != 'z' {
		return false
	}
	ci.sized = true
	n := c.uleb()
	end := c.off + n
	if c.bad || n > uint64(len(c.b)) || end > uint64(len(c.b)) {
		return false
	}
	for _, letter := range aug[1:] {
		switch letter {
		case 'R':
			ci.encoding = c.u8()
		case 'S':
			ci.signal = true
		case 'P':
			t.address(c, c.u8())
		case 'L':
			c.u8()
		case 'B', 'G': // of arm64: a key for pointers, memory tags
		default:
			return false
		}
	}
	c.off = end
	return !c.bad
}

// address reads an address in one of the encodings of .eh_frame.
func (t *frameTable) address(c *cursor, encoding byte) uint64 {
	if encoding == 0xff {
		return 0
	}
	at, v := t.addr+c.off, uint64(0)
	switch encoding & 0x0f {
	case 0, 4, 12:
		v = c.u64()
	case 1:
		v = c.uleb()
	case 2:
		v = uint64(c.u16())
	case 3:
		v = uint64(c.u32())
	case 9:
		v = uint64(c.sleb())
	case 10:
		v = uint64(int16(c.u16()))
	case 11:
		v = uint64(int32(c.u32()))
	default:
		c.bad = true
	}
	switch encoding & 0x70 {
	case 0:
	case 0x10:
		v += at
	default:
		if encoding&0x80 == 0 { // an indirect one is of a personality, which is of no use here
			c.bad = true
		}
	}
	return v
}

// find returns the entry of an address, nil if there is none.
func (t *frameTable) find(addr uint64) *fde {
	i := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].start > addr })
	if i == 0 || addr >= t.entries[i-1].end {
		return nil
	}
	return &t.entries[i-1]
}

// begins reports whether a function begins behind low, up to high.
func (t *frameTable) begins(low, high uint64) bool {
	i := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].start > low })
	return i < len(t.entries) && t.entries[i].start <= high
}

// ruleKind says where a register of the caller is.
type ruleKind uint8

const (
	ruleSame ruleKind = iota // it has its value still, or nothing is said of it
	ruleUndefined
	ruleOffset    // in memory, at CFA + n
	ruleValOffset // it is CFA + n
	ruleRegister  // in register n
	ruleExpr      // in memory, where the expression says
	ruleValExpr   // what the expression says
)

type rule struct {
	kind ruleKind
	set  bool // a rule was given
	n    int64
	expr []byte
}

// row is how to find the caller of one address.
type row struct {
	cfaReg  int
	cfaOff  int64
	cfaExpr []byte
	rules   [numRegisters]rule
}

// row runs the programs of an entry up to an address.
func (t *frameTable) row(f *fde, addr uint64) (*row, error) {
	ci := &t.cies[f.cie]
	m := machine{t: t, ci: ci, loc: f.start, until: ^uint64(0)}
	if err := m.run(ci.program); err != nil {
		return nil, err
	}
	m.initial = m.row
	m.loc, m.until, m.done = f.start, addr, false
	if err := m.run(t.data[f.off : f.off+f.size]); err != nil {
		return nil, err
	}
	return &m.row, nil
}

// machine runs a program of call frame instructions.
type machine struct {
	t          *frameTable
	ci         *cie
	row        row
	initial    row
	saved      []row
	loc, until uint64
	done       bool
}

func (m *machine) advance(n uint64) {
	m.loc += n * m.ci.codeAlign
	m.done = m.loc > m.until
}

func (m *machine) set(reg uint64, r rule) {
	if reg < numRegisters { // others, of vectors, are of no use
		r.set = true
		m.row.rules[reg] = r
	}
}

func (m *machine) restore(reg uint64) {
	if reg < numRegisters {
		m.row.rules[reg] = m.initial.rules[reg]
	}
}

func (m *machine) run(program []byte) error {
	c := &cursor{b: program}
	for !m.done && c.off < uint64(len(c.b)) && !c.bad {
		op := c.u8()
		switch low := uint64(op & 0x3f); op >> 6 {
		case 1:
			m.advance(low)
		case 2:
			m.set(low, rule{kind: ruleOffset, n: int64(c.uleb()) * m.ci.dataAlign})
		case 3:
			m.restore(low)
		default:
			if err := m.extended(op, c); err != nil {
				return err
			}
		}
	}
	if c.bad {
		return errCFI
	}
	return nil
}

// The instructions without an operand in their own byte (DWARF 5, 6.4.2).
const (
	cfaNop              = 0x00
	cfaSetLoc           = 0x01
	cfaAdvance1         = 0x02
	cfaAdvance2         = 0x03
	cfaAdvance4         = 0x04
	cfaOffsetExt        = 0x05
	cfaRestoreExt       = 0x06
	cfaUndefined        = 0x07
	cfaSameValue        = 0x08
	cfaRegister         = 0x09
	cfaRemember         = 0x0a
	cfaRestoreState     = 0x0b
	cfaDefCFA           = 0x0c
	cfaDefCFARegister   = 0x0d
	cfaDefCFAOffset     = 0x0e
	cfaDefCFAExpr       = 0x0f
	cfaExpr             = 0x10
	cfaOffsetExtSF      = 0x11
	cfaDefCFASF         = 0x12
	cfaDefCFAOffsetSF   = 0x13
	cfaValOffset        = 0x14
	cfaValOffsetSF      = 0x15
	cfaValExpr          = 0x16
	cfaNegateRA         = 0x2d
	cfaArgsSize         = 0x2e
	cfaNegativeOffsetEx = 0x2f
)

func (m *machine) extended(op byte, c *cursor) error {
	switch op {
	case cfaNop, cfaNegateRA:
	case cfaSetLoc:
		m.loc = m.t.address(c, m.ci.encoding&0x0f)
		m.done = m.loc > m.until
	case cfaAdvance1:
		m.advance(uint64(c.u8()))
	case cfaAdvance2:
		m.advance(uint64(c.u16()))
	case cfaAdvance4:
		m.advance(uint64(c.u32()))
	case cfaArgsSize:
		c.uleb()
	case cfaRemember:
		if len(m.saved) >= maxRemember {
			return errCFI
		}
		m.saved = append(m.saved, m.row)
	case cfaRestoreState:
		if len(m.saved) == 0 {
			return errCFI
		}
		m.row = m.saved[len(m.saved)-1]
		m.saved = m.saved[:len(m.saved)-1]
	case cfaDefCFA, cfaDefCFASF, cfaDefCFARegister, cfaDefCFAOffset, cfaDefCFAOffsetSF, cfaDefCFAExpr:
		m.defineCFA(op, c)
	default:
		return m.rule(op, c)
	}
	return nil
}

func (m *machine) defineCFA(op byte, c *cursor) {
	r := &m.row
	switch op {
	case cfaDefCFA:
		r.cfaReg, r.cfaOff, r.cfaExpr = register(c), int64(c.uleb()), nil
	case cfaDefCFASF:
		r.cfaReg, r.cfaOff, r.cfaExpr = register(c), c.sleb()*m.ci.dataAlign, nil
	case cfaDefCFARegister:
		r.cfaReg, r.cfaExpr = register(c), nil
	case cfaDefCFAOffset:
		r.cfaOff = int64(c.uleb())
	case cfaDefCFAOffsetSF:
		r.cfaOff = c.sleb() * m.ci.dataAlign
	case cfaDefCFAExpr:
		r.cfaExpr = c.block()
	}
}

// register reads the number of a register; one that does not exist is never known.
func register(c *cursor) int { return int(min(c.uleb(), numRegisters)) }

func (m *machine) rule(op byte, c *cursor) error {
	reg := c.uleb()
	align := m.ci.dataAlign
	switch op {
	case cfaOffsetExt:
		m.set(reg, rule{kind: ruleOffset, n: int64(c.uleb()) * align})
	case cfaOffsetExtSF:
		m.set(reg, rule{kind: ruleOffset, n: c.sleb() * align})
	case cfaNegativeOffsetEx:
		m.set(reg, rule{kind: ruleOffset, n: -int64(c.uleb()) * align})
	case cfaRestoreExt:
		m.restore(reg)
	case cfaUndefined:
		m.set(reg, rule{kind: ruleUndefined})
	case cfaSameValue:
		m.set(reg, rule{kind: ruleSame})
	case cfaRegister:
		m.set(reg, rule{kind: ruleRegister, n: int64(register(c))})
	case cfaExpr:
		m.set(reg, rule{kind: ruleExpr, expr: c.block()})
	case cfaValOffset:
		m.set(reg, rule{kind: ruleValOffset, n: int64(c.uleb()) * align})
	case cfaValOffsetSF:
		m.set(reg, rule{kind: ruleValOffset, n: c.sleb() * align})
	case cfaValExpr:
		m.set(reg, rule{kind: ruleValExpr, expr: c.block()})
	default:
		return errCFI
	}
	return nil
}

// cursor reads numbers from bytes. Behind their end it is bad and returns zeros.
type cursor struct {
	b   []byte
	off uint64
	bad bool
}

func (c *cursor) take(n uint64) []byte {
	if c.bad || n > uint64(len(c.b)) || c.off > uint64(len(c.b))-n {
		c.bad = true
		return nil
	}
	b := c.b[c.off : c.off+n]
	c.off += n
	return b
}

func (c *cursor) skip(n uint64) { c.take(n) }

func (c *cursor) u8() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) uleb() (v uint64) {
	for shift := uint(0); ; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b&0x80 == 0 || c.bad {
			return v
		}
	}
}

func (c *cursor) sleb() (v int64) {
	for shift := uint(0); ; {
		b := c.u8()
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		shift += 7
		if b&0x80 == 0 || c.bad {
			if b&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
}

func (c *cursor) cstring() string {
	start := c.off
	for c.u8() != 0 {
	}
	if c.bad {
		return ""
	}
	return string(c.b[start : c.off-1])
}

func (c *cursor) block() []byte { return c.take(c.uleb()) }
