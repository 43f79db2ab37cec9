// SPDX-License-Identifier: Apache-2.0

package unwind

import (
	"cmp"
	"debug/dwarf"
	"slices"
	"sort"
)

// lineTable finds source lines in debug information. It reads which compilation unit has which addresses when
// it is asked first.
type lineTable struct {
	data  *dwarf.Data
	info  []byte      // the section .debug_info, until its units are known
	units []unitRange // by address
	read  bool
}

// unitRange is a range of addresses of a compilation unit.
type unitRange struct {
	low, high uint64
	entry     *dwarf.Entry
}

// maxUnitRanges bounds the ranges that are kept.
const maxUnitRanges = 1 << 21

// find returns the line of an address, "" if it is not known.
func (t *lineTable) find(addr uint64) (file string, line int) {
	if !t.read {
		t.read = true
		t.index()
	}
	i := sort.Search(len(t.units), func(i int) bool { return t.units[i].low > addr })
	if i == 0 || addr >= t.units[i-1].high {
		return "", 0
	}
	lr, err := t.data.LineReader(t.units[i-1].entry)
	if err != nil || lr == nil {
		return "", 0
	}
	var e dwarf.LineEntry
	if lr.SeekPC(addr, &e) != nil || e.File == nil || len(e.File.Name) > maxName {
		return "", 0
	}
	return e.File.Name, e.Line
}

func (t *lineTable) index() {
	r := t.data.Reader()
	for _, at := range unitEntries(t.info) {
		r.Seek(at)
		e, err := r.Next()
		if err != nil || e == nil || e.Tag != dwarf.TagCompileUnit {
			continue
		}
		ranges, err := t.data.Ranges(e)
		for _, x := range ranges {
			if err == nil && x[0] < x[1] && len(t.units) < maxUnitRanges {
				t.units = append(t.units, unitRange{x[0], x[1], e})
			}
		}
	}
	t.info = nil
	slices.SortFunc(t.units, func(a, b unitRange) int { return cmp.Compare(a.low, b.low) })
}

// unitEntries returns where the first entries of the units in .debug_info are. To go from one to the next with a
// reader would read all that is between.
func unitEntries(info []byte) (list []dwarf.Offset) {
	for off := uint64(0); off < uint64(len(info)); {
		c := &cursor{b: info, off: off}
		length, word := uint64(c.u32()), uint64(4)
		if length == 0xffffffff {
			length, word = c.u64(), 8
		}
		start := c.off
		version, kind := c.u16(), byte(unitCompile)
		if version >= 5 {
			kind = c.u8()
		}
		c.skip(word + 1) // where its abbreviations are; size of addresses
		if c.bad || length == 0 || length > uint64(len(info))-start || len(list) >= maxUnitRanges {
			break
		}
		if kind == unitCompile {
			list = append(list, dwarf.Offset(c.off))
		}
		off = start + length
	}
	return list
}

const unitCompile = 1 // DW_UT_compile
