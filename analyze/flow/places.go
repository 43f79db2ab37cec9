// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"

	"github.com/iotape/iotape/trace"
)

// placeBytes is the size of the parts of a file whose moves are found at once.
const placeBytes = 64 << 10

// places are the moves of a file, by where in it they were.
type places struct {
	parts map[int64][]uint32
	wide  []uint32 // that were in many parts, or cut the file off
}

// touching returns the moves of a file that may have been where a move was, in causal
// order.
func (f *Flow) touching(m *move) []uint32 {
	p := f.places[m.object]
	if p == nil {
		p = &places{parts: map[int64][]uint32{}}
		for _, k := range f.byObject.of(m.object) {
			v := &f.moves[k]
			from, to := v.at/placeBytes, (v.end()-1)/placeBytes
			switch {
			case v.at == reset || v.at >= 0 && to-from > 64:
				p.wide = append(p.wide, k)
			case v.at >= 0:
				for part := from; part <= to; part++ {
					p.parts[part] = append(p.parts[part], k)
				}
			}
		}
		f.places[m.object] = p
	}
	from, to := m.at/placeBytes, (m.end()-1)/placeBytes
	if to-from > 64 {
		return f.byObject.of(m.object)
	}
	list := slices.Clone(p.wide)
	for part := from; part <= to; part++ {
		list = append(list, p.parts[part]...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// extents are what is where in a file, as it is at one moment.
type extents struct {
	parts map[int64][]extent
}

// extent is a part of what a move wrote, within one part of placeBytes.
type extent struct {
	from, to uint32 // from the part's beginning
	move     uint32
}

// partEnd returns where the part of placeBytes that a position is in ends, or what goes on to a
// position: files may be as long as the numbers go.
func partEnd(from, to int64) int64 { return from + min(to-from, placeBytes-from%placeBytes) }

// put notes what a move wrote.
func (x *extents) put(from, to int64, move uint32) {
	if x.parts == nil {
		x.parts = map[int64][]extent{}
	}
	to = from + min(to-from, trace.MaxContentBytes) // a trace that says more is wrong
	for from < to {
		part := from / placeBytes
		end := partEnd(from, to)
		a, b := uint32(from%placeBytes), uint32(end-part*placeBytes)
		list := x.parts[part]
		if n := len(list); n == 0 || list[n-1].to <= a {
			x.parts[part] = append(list, extent{a, b, move})
		} else {
			x.parts[part] = over(list, extent{a, b, move})
		}
		from = end
	}
}

// over puts an extent in the place of what it covers. An extent of move none leaves a gap.
func over(list []extent, e extent) []extent {
	i, _ := slices.BinarySearchFunc(list, e.from,
		func(x extent, at uint32) int { return int(int64(x.to) - int64(at) - 1) })
	j := i
	var new []extent
	for ; j < len(list) && list[j].from < e.to; j++ {
		if x := list[j]; x.from < e.from {
			new = append(new, extent{x.from, e.from, x.move})
		}
	}
	if e.move != none {
		new = append(new, e)
	}
	if j > i {
		if x := list[j-1]; x.to > e.to {
			new = append(new, extent{e.to, x.to, x.move})
		}
	}
	return slices.Replace(list, i, j, new...)
}

// none is no move.
const none = 1<<32 - 1

// cut forgets what is from a position on.
func (x *extents) cut(from int64) {
	for part, list := range x.parts {
		switch start := part * placeBytes; {
		case start >= from:
			delete(x.parts, part)
		case start > from-placeBytes:
			x.parts[part] = over(list, extent{uint32(from - start), placeBytes, none})
		}
	}
}

// each calls f with what is from one position to another, in order.
func (x *extents) each(from, to int64, f func(from, to int64, move uint32)) {
	to = from + min(to-from, trace.MaxContentBytes) // a trace that says more is wrong
	for from < to {
		part := from / placeBytes
		start := part * placeBytes
		end := partEnd(from, to)
		for _, e := range x.parts[part] {
			a, b := max(start+int64(e.from), from), min(start+int64(e.to), end)
			if a < b {
				f(a, b, e.move)
			}
		}
		from = end
	}
}
