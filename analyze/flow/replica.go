// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"fmt"
	"slices"
)

// Limits of the search for replicas.
const (
	mostPlaces  = 1 << 20   // places in files that are compared: of more content, a part of it
	mostAt      = 64        // files with one content at one place
	compareMost = 256 << 20 // bytes of a file that are compared with those of another
)

// families joins contents that are the same but for some bytes.
func (f *Flow) families() func(class uint32) uint32 {
	parent := make([]uint32, len(f.contents.classes))
	for i := range parent {
		parent[i] = uint32(i)
	}
	root := func(i uint32) uint32 {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for i := range f.relation.list {
		l := &f.relation.list[i]
		if float64(l.near) >= f.o.Threshold { // not bytes in common, which may be zeros
			a, b := root(l.a), root(l.b)
			parent[max(a, b)] = min(a, b)
		}
	}
	return root
}

// replicas finds files that were written the same content at the same places, and where
// they differ in the end.
func (w *finder) replicas() {
	f := w.f
	root := f.families()
	type spot struct {
		family uint32
		at     int64
	}
	every := uint32(f.stats.Contents/(mostPlaces/2) + 1)
	spots := map[spot][]uint32{}
	bytes := map[uint32]int64{}
	type pair struct{ a, b uint32 }
	shared := map[pair]int64{}
	for i := range f.moves {
		m := &f.moves[i]
		if !m.write() || m.at < 0 || m.class == 0 || f.contents.empty[m.class] || f.objects[m.object].Kind != File {
			continue
		}
		k := spot{root(m.class), m.at}
		if k.family%every != 0 {
			continue
		}
		list := spots[k]
		if slices.Contains(list, m.object) || len(list) >= mostAt || list == nil && len(spots) >= mostPlaces {
			continue
		}
		bytes[m.object] += m.bytes()
		for _, o := range list {
			shared[pair{min(o, m.object), max(o, m.object)}] += m.bytes()
		}
		spots[k] = append(list, m.object)
	}
	group := map[uint32]uint32{} // by file: the first of its group
	var leader func(o uint32) uint32
	leader = func(o uint32) uint32 {
		if g, ok := group[o]; ok && g != o {
			return leader(g)
		}
		return o
	}
	var pairs []pair
	for p := range shared {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(x, y pair) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	for _, p := range pairs {
		if n := shared[p]; n >= smallest && 2*n >= max(bytes[p.a], bytes[p.b]) {
			a, b := leader(p.a), leader(p.b)
			group[a], group[b] = min(a, b), min(a, b)
		}
	}
	members := map[uint32][]uint32{}
	for o := range group {
		members[leader(o)] = append(members[leader(o)], o)
	}
	var leaders []uint32
	most := 0
	for l, list := range members {
		slices.Sort(list)
		leaders = append(leaders, l)
		most = max(most, len(list))
	}
	if most == 0 && len(bytes) > 0 {
		most = 1
	}
	f.totals["replicas"] = int64(most)
	slices.Sort(leaders)
	for _, l := range leaders {
		w.compareReplicas(members[l])
	}
}

// compareReplicas reports where files that should be the same are not. Of three and more,
// the most are right.
func (w *finder) compareReplicas(files []uint32) {
	f := w.f
	if len(files) > 16 {
		files = files[:16]
	}
	var left int64 = compareMost
	type odd struct {
		count int
		bytes int64
		e     Edge
		d     Diff
	}
	odds := map[uint32]*odd{}
	for at, list := range w.files[files[0]].partsInOrder() {
		for _, x := range list {
			from, to := at*placeBytes+int64(x.from), at*placeBytes+int64(x.to)
			if left -= to - from; left < 0 {
				return
			}
			// What each of them has there, by move; one that wrote there in several pieces
			// is compared piece by piece.
			for _, o := range files[1:] {
				w.files[o].each(from, to, func(a, b int64, by uint32) {
					v, u := &f.moves[x.move], &f.moves[by]
					e := Edge{From: int(x.move), To: int(by), Bytes: b - a, Of: u.bytes(), Off: a - u.at, FromOff: a - v.at}
					d, ok := f.differs(&e)
					if !ok || d.Differ == 0 {
						return
					}
					wrong := o
					if len(files) > 2 && w.votes(files, a, b, x.move) {
						wrong, e.From, e.To, e.Off, e.FromOff = files[0], e.To, e.From, e.FromOff, e.Off
						d.Before, d.After, d.First, d.FromFirst = d.After, d.Before, d.FromFirst, d.First
					}
					if odds[wrong] == nil {
						odds[wrong] = &odd{e: e, d: d}
					}
					odds[wrong].count++
					odds[wrong].bytes += int64(d.Differ)
				})
			}
		}
	}
	for _, o := range files {
		if x := odds[o]; x != nil {
			m := &f.moves[x.e.To]
			f.add(Finding{Problem: Differing, Moves: []int{x.e.From, x.e.To}, Bytes: x.bytes, Diff: &x.d,
				Text: fmt.Sprintf("%s is not like its replica %s: %d bytes differ, the first at %d", f.name(&f.objects[m.object]), f.name(&f.objects[f.moves[x.e.From].object]), x.bytes, m.at+int64(x.d.First))})
		}
	}
}

// votes reports whether most of the files contradict the first one at some place.
func (w *finder) votes(files []uint32, from, to int64, first uint32) bool {
	against := 0
	v := &w.f.moves[first]
	for _, o := range files[1:] {
		differs := false
		w.files[o].each(from, to, func(a, b int64, by uint32) {
			u := &w.f.moves[by]
			e := Edge{From: int(first), To: int(by), Bytes: b - a, Off: a - u.at, FromOff: a - v.at}
			d, ok := w.f.differs(&e)
			differs = differs || ok && d.Differ > 0
		})
		if differs {
			against++
		}
	}
	return 2*against > len(files)
}

// partsInOrder iterates over the parts of a file.
func (x *extents) partsInOrder() func(yield func(int64, []extent) bool) {
	return func(yield func(int64, []extent) bool) {
		if x == nil {
			return
		}
		var keys []int64
		for k := range x.parts {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			if !yield(k, x.parts[k]) {
				return
			}
		}
	}
}
