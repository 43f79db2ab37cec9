// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// A place is patched so that every address where the program can go on stays one, the place
// itself and the one behind it included. Either the two bytes of its syscall instruction
// become a short jump into padding, where a near jump leads to a stub, or another short jump
// to padding further on. Or, where there is none near, a near jump takes the place of the
// instruction before, if that has five bytes or more and can be executed elsewhere: in the stub.

// plan says how a place is patched. The zero value is that it cannot be.
type plan struct {
	steps []step
	moved int // bytes of the instruction before the place, which the first step replaces; 0: none
}

// step is a jump of a plan: at an offset of the file, to the next one's, or to the stub.
type step struct {
	off  uint64
	near bool // a jump of 5 bytes, to the stub; else of 2
	was  [5]byte
}

// bytes of the step's jump.
func (st *step) bytes() int {
	if st.near {
		return 5
	}
	return 2
}

// fits reports whether all that a plan changes is as it was when it was made. A program may have unmapped the file
// since, and made code of its own at the same place.
func (p *plan) fits(m memory, bias uint64) bool {
	for i := range p.steps {
		st := &p.steps[i]
		var now [5]byte
		if n := st.bytes(); !m.read(now[:n], bias+st.off) || !bytes.Equal(now[:n], st.was[:n]) {
			return false
		}
	}
	return true
}

// addRegion notes a mapping of a program or library, and patches the places in it that were
// met before, in other processes.
func (s *session) addRegion(th *thread, m *mapping) {
	sp := th.space
	r := region{start: m.start, end: m.end, bias: m.start - m.off, name: m.name}
	if m.off <= m.start {
		r.image = s.image(sp, &r, m)
	}
	sp.regions = append(sp.regions, r)
	if r.image == nil {
		return
	}
	var to memory = sp
	if sp.users == 1 { // no other thread can come by
		b := &batch{sp: sp, pages: map[uint64][]byte{}}
		defer b.flush()
		to = b
	}
	for off, plan := range r.image.plans {
		if at := r.bias + off; len(plan.steps) > 0 && at >= r.start && at < r.end {
			s.apply(th, to, &r, at, plan)
		}
	}
}

// memory is what a patch is written to.
type memory interface {
	read(b []byte, addr uint64) bool
	write(b []byte, addr uint64) bool
	replace(b []byte, addr uint64) bool // an instruction by another
}

// batch gathers writes by page.
type batch struct {
	sp    *space
	pages map[uint64][]byte // by address
}

// page returns a page that is to be written, nil if it is not there.
func (b *batch) page(addr uint64) []byte {
	base := addr &^ (pageBytes - 1)
	p, ok := b.pages[base]
	if !ok {
		if p = make([]byte, pageBytes); !b.sp.read(p, base) {
			p = nil
		}
		b.pages[base] = p
	}
	return p
}

func (b *batch) each(to []byte, addr uint64, f func(page, part []byte)) bool {
	for len(to) > 0 {
		p := b.page(addr)
		if p == nil {
			return false
		}
		off := addr % pageBytes
		n := min(len(to), int(pageBytes-off))
		f(p[off:], to[:n])
		to, addr = to[n:], addr+uint64(n)
	}
	return true
}

func (b *batch) read(to []byte, addr uint64) bool {
	return b.each(to, addr, func(page, part []byte) { copy(part, page) })
}

func (b *batch) write(from []byte, addr uint64) bool {
	return b.each(from, addr, func(page, part []byte) { copy(page, part) })
}

func (b *batch) replace(from []byte, addr uint64) bool { return b.write(from, addr) }

// flush writes the pages: those of stubs first, since the others lead there.
func (b *batch) flush() {
	stubs := func(addr uint64) bool {
		for i := range b.sp.stubs {
			if p := &b.sp.stubs[i]; addr-p.addr < p.size {
				return true
			}
		}
		return false
	}
	for _, first := range []bool{true, false} {
		for addr, page := range b.pages {
			if page != nil && stubs(addr) == first {
				b.sp.write(page, addr)
			}
		}
	}
}

// patch makes a place lead to our code. It returns false if that cannot be done: then its
// calls all stop.
func (s *session) patch(th *thread, site uint64) bool {
	sp := th.space
	if th.slot == nil || !sp.attach(th.t.PID) {
		return false
	}
	if sp.sites[site] != 0 {
		if sp.patched(site) {
			return true // by another thread
		}
		// Its process was forked before the place was patched in the one that made it.
		delete(sp.sites, site)
		delete(sp.moved, site)
	}
	r := sp.region(site)
	if r == nil || r.image == nil || !r.image.mappedAt(sp, r.bias) {
		s.noteSlow(th, site)
		return false
	}
	plan, met := r.image.plans[site-r.bias]
	if !met {
		plan = r.image.plan(sp, r, site-r.bias)
	}
	if len(plan.steps) == 0 || !s.apply(th, sp, r, site, plan) {
		s.noteSlow(th, site)
		return false
	}
	return true
}

// stubFor returns where the way to our code begins for a place that cannot be patched.
func (s *session) stubFor(th *thread, site uint64) (uint64, bool) {
	sp := th.space
	if stub := sp.lone[site]; stub != 0 {
		return stub, true
	}
	if th.slot == nil || !sp.attach(th.t.PID) {
		return 0, false
	}
	stub, ok := s.newStub(sp, sp, site, nil)
	if ok {
		sp.lone[site] = stub
	}
	return stub, ok
}

// patched reports whether a jump is where a place was patched.
func (sp *space) patched(site uint64) bool {
	start, jump := site, byte(0xeb)
	if n := len(sp.moved[site]); n > 0 {
		start, jump = site-uint64(n), 0xe9
	}
	var b [1]byte
	return sp.read(b[:], start) && b[0] == jump
}

// apply writes a plan's jumps, the last first.
func (s *session) apply(th *thread, m memory, r *region, site uint64, p plan) bool {
	sp := th.space
	var now [2]byte
	if !sp.attach(th.t.PID) || !m.read(now[:], site) || now != [2]byte(syscallBytes) || !p.fits(m, r.bias) {
		return false
	}
	moved := make([]byte, p.moved)
	if !m.read(moved, site-uint64(p.moved)) {
		return false
	}
	next, ok := s.newStub(m, sp, site, moved)
	if !ok {
		return false
	}
	stub := next
	for i := len(p.steps) - 1; i >= 0; i-- {
		at := r.bias + p.steps[i].off
		jump := jumpTo(next, at, p.steps[i].near)
		if jump == nil {
			return false
		}
		for k := range jump {
			sp.hops[at+uint64(k)] = site
		}
		if p.moved > 0 {
			sp.moved[site] = moved
			sp.sites[site] = stub
			return m.replace(jump, at)
		}
		if !m.write(jump, at) {
			return false
		}
		next = at
	}
	sp.sites[site] = stub
	return m.replace(jumpTo(next, site, false), site)
}

const breakpoint = 0xcc

// jumpTo returns a jump from one address to another, nil if it is too far.
func jumpTo(to, at uint64, near bool) []byte {
	if near {
		rel := int64(to) - int64(at+5)
		if rel != int64(int32(rel)) {
			return nil
		}
		return binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(rel))
	}
	rel := int64(to) - int64(at+2)
	if rel != int64(int8(rel)) {
		return nil
	}
	return []byte{0xeb, byte(rel)}
}

// replace writes an instruction over another while threads may come by: they take the old or
// the new way, or stop at a breakpoint, and are then sent there again (signal).
func (sp *space) replace(b []byte, at uint64) bool {
	if sp.users == 1 {
		return sp.write(b, at) // its thread is stopped
	}
	return sp.write([]byte{breakpoint}, at) && sp.write(b[1:], at+1) && sp.write(b[:1], at)
}

// newStub writes a stub for a place: the program's system call with a jump behind the place, and the
// way to our code. There, an instruction that was moved is executed, if one was. It returns where that way
// begins.
func (s *session) newStub(m memory, sp *space, site uint64, moved []byte) (uint64, bool) {
	for i := range sp.stubs {
		p := &sp.stubs[i]
		if p.used+stubBytes > p.size || !reaches(site, p.addr) {
			continue
		}
		at := p.addr + p.used
		p.used += stubBytes
		b := append(make([]byte, 0, stubBytes), syscallBytes...)
		b = append(b, jumpTo(site+2, at+2, true)...)
		b = append(b, make([]byte, stubEntry-len(b))...)
		b = append(b, moved...)
		b = append(b, 0x48, 0x8d, 0x0d) // lea at(%rip), %rcx
		b = binary.LittleEndian.AppendUint32(b, -uint32(len(b)+4))
		b = append(b, 0x65, 0xff, 0x24, 0x25) // jmp *%gs:entry
		b = binary.LittleEndian.AppendUint32(b, uint32(unsafe.Offsetof(slot{}.Entry)))
		b = append(b, make([]byte, stubRet-len(b))...)
		b = binary.LittleEndian.AppendUint64(b, site+2)
		return at + stubEntry, m.write(b, at)
	}
	return 0, false
}

// Within a stub.
const (
	stubEntry = 8  // the way to our code
	stubRet   = 40 // address behind the place
)

// reaches reports whether near jumps lead from one place to the other.
func reaches(a, b uint64) bool {
	d := int64(a) - int64(b)
	return d > -(1<<31)+(1<<20) && d < (1<<31)-(1<<20)
}

// startOf returns where a thread has to begin anew that is on the way to our code, at addr, or
// goes on that is on the way back: 0 if it is neither.
func (sp *space) startOf(addr uint64) uint64 {
	if site := sp.hops[addr]; site != 0 {
		return site - uint64(len(sp.moved[site]))
	}
	stub := sp.stubOf(addr)
	if stub == 0 {
		return 0
	}
	site := sp.siteOf(stub)
	if site == 0 {
		return 0
	}
	switch done := addr - stub; {
	case done == 2: // the call has been made
		return site + 2
	case done == stubEntry:
		return site - uint64(len(sp.moved[site]))
	}
	return site // the moved instruction has been executed
}

// stubOf returns the stub that an address is in, 0 if there is none.
func (sp *space) stubOf(addr uint64) uint64 {
	for i := range sp.stubs {
		if p := &sp.stubs[i]; addr >= p.addr && addr < p.addr+p.used {
			return addr - (addr-p.addr)%stubBytes
		}
	}
	return 0
}

// siteAt returns the place that a stub was made for, 0 if an address is in none. It reads no memory of the program's.
func (sp *space) siteAt(addr uint64) uint64 {
	stub := sp.stubOf(addr)
	if stub == 0 {
		return 0
	}
	for _, list := range []map[uint64]uint64{sp.sites, sp.past, sp.lone} {
		for site, entry := range list {
			if entry-stubEntry == stub {
				return site
			}
		}
	}
	return 0
}

// siteOf returns the place that a stub is for, 0 if it cannot be read.
func (sp *space) siteOf(stub uint64) uint64 {
	var b [8]byte
	if !sp.read(b[:], stub+stubRet) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:]) - uint64(len(syscallBytes))
}
