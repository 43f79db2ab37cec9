// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"fmt"
	"maps"
	"path"
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
	p := w.f.placed()
	groups, most := p.groups()
	w.f.totals["replicas"] = int64(most)
	for _, files := range groups {
		w.compareReplicas(append(files, w.f.namesakes(p, files)...))
	}
}

// placed is how much each file was written, and how much of it pairs of files were written
// alike: content of one family at one place.
type placed struct {
	bytes  map[uint32]int64
	shared map[filePair]int64
}

// filePair is two files, the one with the smaller number first.
type filePair struct{ a, b uint32 }

// placed compares what was written to files.
func (f *Flow) placed() *placed {
	type spot struct {
		family uint32
		at     int64
	}
	p := &placed{bytes: map[uint32]int64{}, shared: map[filePair]int64{}}
	root := f.families()
	every := uint32(f.stats.Contents/(mostPlaces/2) + 1)
	spots := map[spot][]uint32{}
	for i := range f.moves {
		m := &f.moves[i]
		if !f.stores(m) {
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
		p.bytes[m.object] += m.bytes()
		for _, o := range list {
			p.shared[filePair{min(o, m.object), max(o, m.object)}] += m.bytes()
		}
		spots[k] = append(list, m.object)
	}
	return p
}

// stores reports whether a move writes known content that is not empty to a place in a file.
func (f *Flow) stores(m *move) bool {
	return m.write() && m.at >= 0 && m.class != 0 && !f.contents.empty[m.class] &&
		f.objects[m.object].Kind == File
}

// groups returns the groups of files of which each was written much like another one, and
// the size of the largest: 1 if all files were written differently, 0 if there is none.
func (p *placed) groups() (groups [][]uint32, most int) {
	group := map[uint32]uint32{} // by file: the first of its group
	var leader func(o uint32) uint32
	leader = func(o uint32) uint32 {
		if g, ok := group[o]; ok && g != o {
			return leader(g)
		}
		return o
	}
	for _, x := range slices.SortedFunc(maps.Keys(p.shared), func(x, y filePair) int {
		return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	}) {
		if n := p.shared[x]; n >= smallest && 2*n >= max(p.bytes[x.a], p.bytes[x.b]) {
			a, b := leader(x.a), leader(x.b)
			group[a], group[b] = min(a, b), min(a, b)
		}
	}
	members := map[uint32][]uint32{}
	for o := range group {
		members[leader(o)] = append(members[leader(o)], o)
	}
	most = min(len(p.bytes), 1)
	for _, l := range slices.Sorted(maps.Keys(members)) {
		slices.Sort(members[l])
		groups, most = append(groups, members[l]), max(most, len(members[l]))
	}
	return groups, most
}

// namesakes returns files that should be replicas of a group, by their names and sizes: no
// content that was written to them is that of the others. They are on machines of which the
// group has no file of that name.
func (f *Flow) namesakes(p *placed, group []uint32) (list []uint32) {
	type key struct {
		name  string
		bytes int64
	}
	keyOf := func(o uint32) key { return key{path.Base(f.objects[o].Name), p.bytes[o]} }
	machine := func(o uint32) uint32 { return f.order.Machine(f.objects[o].Host) }
	copies, machines := map[key]int{}, map[uint32]bool{}
	for _, o := range group {
		copies[keyOf(o)]++
		machines[machine(o)] = true
	}
	if len(machines) < 2 {
		return nil
	}
	for o := range p.bytes {
		if copies[keyOf(o)] >= 2 && !machines[machine(o)] {
			list = append(list, o)
		}
	}
	slices.Sort(list)
	return list
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
		by    uint32 // the file that it was compared with, or itself
	}
	odds := map[uint32]*odd{}
	parts := map[uint32]int{} // of each file: what was compared with the first one
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
					parts[o]++
					e := Edge{From: int(x.move), To: int(by), Bytes: b - a, Of: u.bytes(), Off: a - u.at,
						FromOff: a - v.at}
					d, ok := f.differs(&e)
					if !ok || d.Differ == 0 || w.kept(x.move, by) {
						return
					}
					wrong := o
					if len(files) > 2 && w.votes(files, a, b, x.move) || len(files) == 2 && w.derived(files[0], o) {
						wrong, e.From, e.To, e.Off, e.FromOff = files[0], e.To, e.From, e.FromOff, e.Off
						d.Before, d.After, d.First, d.FromFirst = d.After, d.Before, d.FromFirst, d.First
					}
					if odds[wrong] == nil {
						odds[wrong] = &odd{e: e, d: d, by: o}
					}
					if odds[wrong].by != o {
						return // counted against another one
					}
					odds[wrong].count++
					odds[wrong].bytes += int64(d.Differ)
				})
			}
		}
	}
	for _, o := range files {
		if x := odds[o]; x != nil && !w.ownLines(&x.e, &x.d, x.count, parts[x.by]) {
			m := &f.moves[x.e.To]
			how := fmt.Sprintf("%d bytes differ, the first at %d", x.bytes, m.at+int64(x.d.First))
			if x.d.Unseen {
				how = many(x.count, "write") + " had other content"
			}
			f.add(Finding{Problem: Differing, Moves: []int{x.e.From, x.e.To}, Bytes: x.bytes, Diff: &x.d,
				Text: fmt.Sprintf("%s is not like its replica %s: %s",
					f.name(&f.objects[m.object]), f.name(&f.objects[f.moves[x.e.From].object]), how)})
		}
	}
}

// ownLines reports whether most of two files differ, count of their parts, and were made by their programs, and
// not received, as two writes show: they are logs of what two programs did, in the same form.
func (w *finder) ownLines(e *Edge, d *Diff, count, parts int) bool {
	return count >= leastPassed && 2*count > parts && !d.Unseen && !w.copied(uint32(e.From)) && !w.copied(uint32(e.To))
}

// kept reports whether two writes that differ are states that programs keep in files, and change there, as
// databases do with pages: copies of those may differ in what each program notes for itself. What is
// written as it was received is none. Pages that are hardly more than zeros are new ones.
func (w *finder) kept(a, b uint32) (yes bool) {
	for _, k := range []uint32{a, b} {
		m := &w.f.moves[k]
		if w.copied(k) {
			return false
		}
		yes = yes || w.f.contents.empty[m.class] || w.updates(k) || w.keeps(m.object)
	}
	return yes
}

// keeps reports whether at least half of the writes to a file are updates.
func (w *finder) keeps(object uint32) bool {
	yes, known := w.states[object]
	if !known {
		writes, updates := 0, 0
		for _, k := range w.f.byObject.of(object) {
			if m := &w.f.moves[k]; m.write() && m.at >= 0 && writes < maxSteps {
				if writes++; w.updates(k) {
					updates++
				}
			}
		}
		yes = 2*updates >= writes
		w.states[object] = yes
	}
	return yes
}

// updates reports whether at the place of a write was something, or something else was read, before. The
// processes of a database share pages: one reads them, and another one writes them.
func (w *finder) updates(k uint32) (yes bool) {
	f := w.f
	m := &f.moves[k]
	for _, j := range f.touching(m) {
		v := &f.moves[j]
		switch {
		case j >= k:
			return yes
		case v.at == reset:
			yes = yes && v.bytes() > m.at
		case v.at >= m.end() || v.end() <= m.at || !v.write() && v.class == m.class:
		default:
			yes = true
		}
	}
	return yes
}

// copied reports whether a process had taken in a write elsewhere: all of it in one piece, or its parts.
func (w *finder) copied(k uint32) bool {
	f := w.f
	p := f.processOf(k)
	if r, ok := f.lastRead(f.moves[k].class, p, k); ok {
		o := f.moves[r].object
		return o != f.moves[k].object && (f.objects[o].Kind != File || !f.contents.empty[f.moves[k].class])
	}
	c := f.compareWrites(p)
	if x := c.writes[k]; x == nil || x.verdict != passedOn {
		return false
	}
	b, n := f.view(f.moves[k].class), int64(0)
	for _, x := range c.pieces[f.moves[k].object] {
		if size := x.end - x.off; x.write == k && x.at+size <= int64(len(b)) && telling(b[x.at:x.at+size]) {
			n += size
		}
	}
	return 2*n >= f.moves[k].bytes() // else it is much zeros, which are everywhere
}

// derived reports whether the first write to file a came after the first one to file b: then it is a
// copy of that.
func (w *finder) derived(a, b uint32) bool {
	first := func(o uint32) int {
		for _, k := range w.f.byObject.of(o) {
			if m := &w.f.moves[k]; m.write() && m.at != reset {
				return int(m.event)
			}
		}
		return 0
	}
	f := w.f
	if f.order.Machine(f.objects[a].Host) == f.order.Machine(f.objects[b].Host) { // by one clock
		return f.order.Wall(first(b)) < f.order.Wall(first(a))
	}
	return f.order.HappenedBefore(first(b), first(a))
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
