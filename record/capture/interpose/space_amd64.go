// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"strconv"
	"strings"
)

// space is an address space with our code in it.
type space struct {
	pid     int
	mem     *os.File // /proc/PID/mem
	arena   *arena
	users   int
	gone    bool // its calls all stop again
	torn    bool // the program unmapped a part of our code
	regions []region
	sites   map[uint64]uint64 // patched, by address: the stub
	moved   map[uint64][]byte // by place: the instruction before it, which a jump replaced
	past    map[uint64]uint64 // places that were patched
	hops    map[uint64]uint64 // addresses of jumps elsewhere: the place
	lone    map[uint64]uint64 // stubs of places that are not patched, by place
	stubs   []stubPage
}

// region is a part of a program or library that is mapped executable.
type region struct {
	start, end uint64
	bias       uint64 // where the file's beginning is mapped
	image      *image // nil: not patched
	name       string
}

// stubPage has room for stubs. Its first bytes are the address of our code's entry.
type stubPage struct {
	addr, used, size uint64
}

func openSpace(pid int) (*space, error) {
	mem, err := os.OpenFile("/proc/"+strconv.Itoa(pid)+"/mem", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &space{pid: pid, mem: mem, users: 1, sites: map[uint64]uint64{}, moved: map[uint64][]byte{},
		hops: map[uint64]uint64{}, lone: map[uint64]uint64{}}, nil
}

// copy returns the space of a process that was forked.
func (sp *space) copy(pid int) *space {
	c := &space{
		pid:   pid,
		arena: sp.arena, users: 1, gone: sp.gone, torn: sp.torn, past: maps.Clone(sp.past),
		regions: append([]region(nil), sp.regions...),
		sites:   maps.Clone(sp.sites), moved: maps.Clone(sp.moved), hops: maps.Clone(sp.hops),
		lone: maps.Clone(sp.lone), stubs: append([]stubPage(nil), sp.stubs...),
	}
	c.arena.refs++
	return c
}

// attach opens the memory of a process that has the space.
func (sp *space) attach(pid int) bool {
	if sp.mem != nil {
		return true
	}
	mem, err := os.OpenFile("/proc/"+strconv.Itoa(pid)+"/mem", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	sp.pid, sp.mem = pid, mem
	return true
}

func (sp *space) release() {
	if sp.users--; sp.users > 0 {
		return
	}
	if sp.mem != nil {
		sp.mem.Close()
	}
	if sp.arena != nil {
		sp.arena.release()
	}
}

// ours reports whether a range has memory of ours.
func (sp *space) ours(from, to uint64) bool {
	if from < sp.arena.base+uint64(arenaBytes) && to > sp.arena.base {
		return true
	}
	for i := range sp.stubs {
		if p := &sp.stubs[i]; from < p.addr+p.size && to > p.addr {
			return true
		}
	}
	return false
}

// addr returns the address of an offset of our code.
func (sp *space) addr(off uint64) uint64 { return sp.arena.base + off }

func (sp *space) newFiles() *fileTable {
	if i := sp.arena.takeFiles(); i >= 0 {
		return &fileTable{arena: sp.arena, index: i, users: 1}
	}
	return nil
}

// read reads all of b, or reports false.
func (sp *space) read(b []byte, addr uint64) bool {
	if !sp.attach(sp.pid) || int64(addr) < 0 {
		return false
	}
	n, _ := sp.mem.ReadAt(b, int64(addr))
	return n == len(b)
}

// write writes also what the program may only read.
func (sp *space) write(b []byte, addr uint64) bool {
	if !sp.attach(sp.pid) || int64(addr) < 0 {
		return false
	}
	n, _ := sp.mem.WriteAt(b, int64(addr))
	return n == len(b)
}

// mapping is a line of /proc/PID/maps.
type mapping struct {
	start, end, off uint64
	perms           string
	dev             uint32
	ino             uint64
	name            string
}

func (sp *space) mappings() (list []mapping) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(sp.pid) + "/maps")
	if err != nil {
		return nil
	}
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		var m mapping
		f := strings.Fields(sc.Text())
		if len(f) < 5 {
			continue
		}
		start, end, _ := strings.Cut(f[0], "-")
		m.start, _ = strconv.ParseUint(start, 16, 64)
		m.end, _ = strconv.ParseUint(end, 16, 64)
		m.perms = f[1]
		m.off, _ = strconv.ParseUint(f[2], 16, 64)
		major, minor, _ := strings.Cut(f[3], ":")
		high, _ := strconv.ParseUint(major, 16, 32)
		low, _ := strconv.ParseUint(minor, 16, 32)
		m.dev = uint32(high<<20 | low)
		m.ino, _ = strconv.ParseUint(f[4], 10, 64)
		if len(f) > 5 {
			m.name = strings.Join(f[5:], " ")
		}
		list = append(list, m)
	}
	return list
}

// region returns the one that an address is in.
func (sp *space) region(addr uint64) *region {
	for i := range sp.regions {
		if r := &sp.regions[i]; addr >= r.start && addr < r.end {
			return r
		}
	}
	return nil
}

// cover makes room for what is mapped at a range: what was there before is gone.
func (sp *space) cover(start, end uint64) {
	kept := sp.regions[:0]
	for _, r := range sp.regions {
		if r.end <= start || r.start >= end {
			kept = append(kept, r)
			continue
		}
		if r.start < start {
			left := r
			left.end = start
			kept = append(kept, left)
		}
		if r.end > end {
			right := r
			right.start = end
			kept = append(kept, right)
		}
	}
	sp.regions = kept
	for site := range sp.sites {
		if site >= start && site < end {
			delete(sp.sites, site)
			delete(sp.moved, site)
		}
	}
	for site := range sp.lone {
		if site >= start && site < end {
			delete(sp.lone, site)
		}
	}
	for hop := range sp.hops {
		if hop >= start && hop < end {
			delete(sp.hops, hop)
		}
	}
}

// restore takes the jumps to our code out of the program, as far as they are there: it may have something else there.
func (sp *space) restore() {
	for site := range sp.sites {
		if !sp.patched(site) {
			continue
		}
		if moved := sp.moved[site]; len(moved) > 0 {
			sp.replace(moved, site-uint64(len(moved)))
		} else {
			sp.replace(syscallBytes, site)
		}
	}
	sp.past = sp.sites
	sp.sites, sp.moved = map[uint64]uint64{}, map[uint64][]byte{}
}

// patching reports whether a place has been changed, or is changed back.
func (sp *space) patching(addr uint64) bool {
	return sp.sites[addr] != 0 || sp.past[addr] != 0 || sp.hops[addr] != 0
}

// syscallBytes is the instruction syscall.
var syscallBytes = []byte{0x0f, 0x05}

const pageBytes = uint64(4096)

// freeNear returns an address near a place where n bytes are free.
func freeNear(list []mapping, place, n uint64) (uint64, bool) {
	const reach = 1 << 30
	best, found := uint64(0), false
	low := uint64(1 << 16) // vm.mmap_min_addr
	for _, m := range append(list, mapping{start: 1 << 47, end: 1 << 47}) {
		if m.start > low+n+2*pageBytes {
			at := m.start - n - pageBytes
			if place >= m.start || at < place { // below it: above a program its heap grows
				if place-at < reach {
					best, found = at, true
				}
			} else if !found && low+pageBytes-place < reach {
				return low + 16*pageBytes, true
			}
		}
		low = m.end
	}
	return best, found
}

const (
	stubPageBytes = 64 << 10 // as the loader has it
)
