// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"encoding/binary"
	"math"
)

// A place is patched without moving a neighbour: the two bytes of its syscall instruction
// become a short jump into padding between functions, where a near jump leads to a stub, or
// another short jump to padding further on. So every address of the program stays one where
// it can go on, the place itself and the one behind it included.

// step is a jump of a plan: at an offset of the file, to the next one's, or to the stub.
type step struct {
	off  uint64
	near bool // a jump of 5 bytes, to the stub; else of 2
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
	for off, plan := range r.image.plans {
		if at := r.bias + off; len(plan) > 0 && at >= r.start && at < r.end {
			s.apply(th, &r, at, plan)
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
		return true // by another thread
	}
	r := sp.region(site)
	if r == nil || r.image == nil {
		s.noteSlow(th, site, "it is in no program or library")
		return false
	}
	plan, met := r.image.plans[site-r.bias]
	if !met {
		plan = r.image.plan(sp, r, site-r.bias)
	}
	if len(plan) == 0 || !s.apply(th, r, site, plan) {
		s.noteSlow(th, site, "there is no padding near")
		return false
	}
	return true
}

// apply writes a plan's jumps, the last first.
func (s *session) apply(th *thread, r *region, site uint64, plan []step) bool {
	sp := th.space
	if !sp.attach(th.t.PID) {
		return false
	}
	stub, ok := s.newStub(th, site)
	if !ok {
		return false
	}
	next := stub
	for i := len(plan) - 1; i >= 0; i-- {
		at := r.bias + plan[i].off
		var jump []byte
		if plan[i].near {
			rel := int64(next) - int64(at+5)
			if rel != int64(int32(rel)) {
				return false
			}
			jump = binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(rel))
		} else {
			jump = []byte{0xeb, byte(int8(int64(next) - int64(at+2)))}
		}
		if !sp.write(jump, at) {
			return false
		}
		for k := range jump {
			sp.hops[at+uint64(k)] = site
		}
		next = at
	}
	var now [2]byte
	if !sp.read(now[:], site) || now != [2]byte(syscallBytes) {
		return false
	}
	sp.sites[site] = stub
	// A thread that comes by meanwhile stops at the breakpoint, or takes the old or the new way.
	jump := [2]byte{0xeb, byte(int8(int64(next) - int64(site+2)))}
	return sp.write([]byte{0xcc}, site) && sp.write(jump[1:], site+1) && sp.write(jump[:1], site)
}

// newStub writes a stub: it says where the program goes on, and jumps to our code.
func (s *session) newStub(th *thread, site uint64) (uint64, bool) {
	sp := th.space
	for i := range sp.stubs {
		p := &sp.stubs[i]
		if p.used+stubBytes > p.size || !reaches(site, p.addr) {
			continue
		}
		at := p.addr + p.used
		p.used += stubBytes
		// lea site+2(%rip), %rcx; jmp *page(%rip)
		b := []byte{0x48, 0x8d, 0x0d}
		b = binary.LittleEndian.AppendUint32(b, uint32(site+2-(at+7)))
		b = append(b, 0xff, 0x25)
		b = binary.LittleEndian.AppendUint32(b, uint32(p.addr-(at+13)))
		return at, sp.write(b, at)
	}
	at, ok := sp.freeNear(site, stubPageBytes)
	if !ok || !reaches(site, at) {
		return 0, false
	}
	const mmap = 9
	got, err := s.makeCall(th, mmap, at, stubPageBytes, protRX, anonymousAt, math.MaxUint64, 0)
	if err != nil || uint64(got) != at {
		return 0, false
	}
	sp.stubs = append(sp.stubs, stubPage{addr: at, size: stubPageBytes})
	sp.startStubs(&sp.stubs[len(sp.stubs)-1], s.code.common)
	return s.newStub(th, site)
}

// startStubs writes the address of our code's entry.
func (sp *space) startStubs(p *stubPage, common uint64) {
	sp.write(binary.LittleEndian.AppendUint64(nil, sp.addr(common)), p.addr)
	p.used = stubBytes
}

// reaches reports whether near jumps lead from one place to the other.
func reaches(a, b uint64) bool {
	d := int64(a) - int64(b)
	return d > -(1<<31)+(1<<20) && d < (1<<31)-(1<<20)
}

// siteOf returns the place whose way to our code has an address: 0 if there is none.
func (sp *space) siteOf(addr uint64) uint64 {
	if site := sp.hops[addr]; site != 0 {
		return site
	}
	for i := range sp.stubs {
		p := &sp.stubs[i]
		if addr < p.addr+stubBytes || addr >= p.addr+p.used {
			continue
		}
		stub := addr - (addr-p.addr)%stubBytes
		for site, at := range sp.sites {
			if at == stub {
				return site
			}
		}
	}
	return 0
}
