// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"slices"
	"sort"
)

// Why says how content got from one move to another.
type Why uint8

// The ways.
const (
	Sent      Why = iota // through a stream or as a datagram: by its bytes
	Stored               // through a file: by offsets
	Copied               // by one call, between two descriptors
	Processed            // a process took it in, and gave it out
	Elsewhere            // another process had it before: nothing shows how it got here
)

func (w Why) String() string {
	return [...]string{"sent", "stored", "copied", "processed", "elsewhere"}[w]
}

// Edge leads from a move to a later one.
type Edge struct {
	From, To int // moves
	Why      Why
	// Bytes of To are From's; of which To has Of.
	Bytes, Of int64
	// Similarity is the part of To's bytes that are From's, 0 to 1; a Jaccard index where
	// Estimated is set, because bytes are not known or do not stand in one piece.
	Similarity float64
	Estimated  bool
	// Changed is set if To is From's content with bytes changed.
	Changed bool
	// Off is where From's content, from FromOff on, begins in To.
	Off, FromOff int64
}

// change is what a process gave out that is not quite what it took in.
type change struct {
	from  uint32 // move
	shift int64  // byte i of what was given out is byte i+shift of what was taken in
	diff  Diff
}

// maxSteps bounds how far is searched along a file or a list of moves.
const maxSteps = 4096

// Before returns where the content of a move came from: the last edges to it.
func (f *Flow) Before(id int) []Edge {
	m := &f.moves[id]
	if m.at == reset {
		return nil
	}
	if m.write() {
		if id > 0 && f.moves[id-1].event == m.event && !f.moves[id-1].write() && f.moves[id-1].at != reset {
			return []Edge{f.whole(id-1, id, Copied)}
		}
		return f.processed(id)
	}
	switch f.objects[m.object].Kind {
	case Stream:
		return f.transported(id)
	case Socket:
		var out []Edge
		for _, s := range f.packets[uint32(id)] {
			out = append(out, f.whole(int(s), id, Sent))
		}
		return out
	}
	return f.stored(id)
}

// whole is an edge of all the bytes.
func (f *Flow) whole(from, to int, why Why) Edge {
	n := f.moves[to].bytes()
	return Edge{From: from, To: to, Why: why, Bytes: n, Of: n, Similarity: 1}
}

// transported returns what was written to a stream where a move read it, or what was
// read of what a move wrote.
func (f *Flow) transported(id int) (out []Edge) {
	m := &f.moves[id]
	o := &f.objects[m.object]
	list := f.byObject.of(m.object)
	wrote, read := list[:o.ends[0]], list[min(int(o.ends[0]), len(list)):]
	if !o.Known {
		return f.alike(id, wrote, read)
	}
	other := wrote
	if m.write() {
		other = read
	}
	if m.at < 0 {
		return nil
	}
	n := m.bytes()
	if o.Messages {
		n = 1
	}
	size := func(v *move) int64 {
		if o.Messages {
			return 1
		}
		return v.bytes()
	}
	at := sort.Search(len(other), func(i int) bool { v := &f.moves[other[i]]; return v.at+size(v) > m.at })
	for _, k := range other[at:] {
		v := &f.moves[k]
		if v.at >= m.at+n || len(out) >= maxSteps {
			break
		}
		e := Edge{From: int(k), To: id, Why: Sent, Similarity: 1}
		from, to := v, m
		if m.write() {
			e.From, e.To, from, to = id, int(k), m, v
		}
		if o.Messages {
			e.Bytes = min(from.bytes(), to.bytes())
		} else {
			start := max(from.at, to.at)
			e.Bytes, e.Off, e.FromOff = min(from.end(), to.end())-start, start-to.at, start-from.at
		}
		e.Of = to.bytes()
		out = append(out, e)
	}
	return out
}

// alike returns the moves on the other side of a stream of unknown positions that have
// the same content: the nearest before, or after.
func (f *Flow) alike(id int, wrote, read []uint32) (out []Edge) {
	m := &f.moves[id]
	if m.class == 0 {
		return nil
	}
	other := wrote
	if m.write() {
		other = read
	}
	found := -1
	for i, k := range other {
		if i > maxSteps {
			break
		}
		if v := &f.moves[k]; v.class == m.class &&
			(m.write() && int(k) > id && found < 0 || !m.write() && int(k) < id) {
			found = int(k)
		}
	}
	switch {
	case found < 0:
	case m.write():
		out = append(out, f.whole(id, found, Sent))
	default:
		out = append(out, f.whole(found, id, Sent))
	}
	return out
}

// stored returns who wrote to a file last what a move read.
func (f *Flow) stored(id int) (out []Edge) {
	m := &f.moves[id]
	if m.at < 0 {
		return nil
	}
	list := f.touching(m)
	at, _ := slices.BinarySearch(list, uint32(id))
	missing := spans{{m.at, m.end()}}
	for i := at - 1; i >= 0 && len(missing) > 0; i-- {
		v := &f.moves[list[i]]
		if !v.write() {
			continue
		}
		if v.at == reset {
			missing = missing.without(v.bytes(), 1<<62)
			continue
		}
		if v.at < 0 {
			continue
		}
		n := missing.overlap(v.at, v.end())
		if n == 0 {
			continue
		}
		missing = missing.without(v.at, v.end())
		start := max(v.at, m.at)
		out = append(out, Edge{From: int(list[i]), To: id, Why: Stored, Bytes: n, Of: m.bytes(), Similarity: 1,
			Off: start - m.at, FromOff: start - v.at})
	}
	slices.Reverse(out)
	return out
}

// spans are parts of a file, in order.
type spans [][2]int64

func (s spans) without(from, to int64) (out spans) {
	for _, p := range s {
		if p[0] < from {
			out = append(out, [2]int64{p[0], min(p[1], from)})
		}
		if p[1] > to {
			out = append(out, [2]int64{max(p[0], to), p[1]})
		}
	}
	return out
}

func (s spans) overlap(from, to int64) (n int64) {
	for _, p := range s {
		n += max(min(p[1], to)-max(p[0], from), 0)
	}
	return n
}

// processed returns what its process, or another one, had taken in before of what a move
// gave out.
func (f *Flow) processed(id int) []Edge {
	m := &f.moves[id]
	if m.class == 0 {
		return nil
	}
	p := f.processOf(uint32(id))
	if from, ok := f.lastRead(m.class, p, uint32(id)); ok {
		return []Edge{f.whole(int(from), id, Processed)}
	}
	out := f.partly(id, func(class uint32) (uint32, bool) { return f.lastRead(class, p, uint32(id)) }, Processed)
	if covers(out) {
		return out
	}
	if c, ok := f.changed[uint32(id)]; ok {
		n := int64(c.diff.Same)
		e := Edge{From: int(c.from), To: id, Why: Processed, Bytes: n, Of: m.bytes(),
			Similarity: float64(n) / float64(max(m.bytes(), 1)), Changed: true, Off: max(-c.shift,
				0), FromOff: max(c.shift, 0)}
		return append([]Edge{e}, slices.DeleteFunc(out, func(x Edge) bool { return x.From == e.From })...)
	}
	if mostly(out) { // the rest is its own
		return out
	}
	if from, ok := f.lastElsewhere(m.class, uint32(id)); ok {
		return []Edge{f.whole(int(from), id, Elsewhere)}
	}
	if len(out) > 0 {
		return out
	}
	return f.partly(id, func(class uint32) (uint32, bool) { return f.lastElsewhere(class, uint32(id)) }, Elsewhere)
}

// covers reports whether edges to a move account for all of its bytes, mostly whether they
// do for half of them.
func covers(edges []Edge) bool { return len(edges) > 0 && accounted(edges) >= edges[0].Of }

func mostly(edges []Edge) bool { return len(edges) > 0 && 2*accounted(edges) >= edges[0].Of }

func accounted(edges []Edge) (n int64) {
	for i := range edges {
		n += edges[i].Bytes
	}
	return n
}

// partly returns where related content came from.
func (f *Flow) partly(id int, last func(class uint32) (uint32, bool), why Why) (out []Edge) {
	m := &f.moves[id]
	for _, l := range f.relation.of(m.class) {
		from, ok := last(l.b)
		if !ok {
			continue
		}
		e := Edge{From: int(from), To: id, Why: why, Bytes: int64(l.bytes), Of: m.bytes(), Off: int64(l.off),
			FromOff: int64(l.from)}
		if e.Similarity = float64(l.bytes) / float64(max(m.bytes(), 1)); l.bytes == 0 {
			e.Similarity, e.Estimated = float64(l.near), true
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(b.From, a.From))
	})
	// What covers no more than a better one, is in it.
	var have spans
	kept := out[:0]
	for _, e := range out {
		if n := e.Bytes - have.overlap(e.Off, e.Off+e.Bytes); len(kept) > 0 && n < max(e.Bytes/8, 1) &&
			!(e.Estimated && len(kept) < 2) {
			continue
		}
		have = append(have, [2]int64{e.Off, e.Off + e.Bytes})
		if kept = append(kept, e); len(kept) == maxLinks {
			break
		}
	}
	return kept
}

// lastRead returns the last move before id by which a process took in a content.
func (f *Flow) lastRead(class, process, id uint32) (uint32, bool) {
	list := f.byClass.of(class)
	from := sort.Search(len(list), func(i int) bool { return f.processOf(list[i]) >= process })
	to := from + sort.Search(len(list)-from,
		func(i int) bool { return f.processOf(list[from+i]) > process || list[from+i] >= id })
	for i := to - 1; i >= from && to-i < maxSteps; i-- {
		if m := &f.moves[list[i]]; !m.write() && m.event != f.moves[id].event {
			return list[i], true
		}
	}
	return 0, false
}

// lastElsewhere returns the last move before id by which another process took in or gave
// out a content, preferably one that happened before.
func (f *Flow) lastElsewhere(class, id uint32) (best uint32, ok bool) {
	list := f.byClass.of(class)
	own := f.processOf(id)
	proved := false
	for at, rounds := 0, 0; at < len(list) && rounds < 64; rounds++ {
		p := f.processOf(list[at])
		end := at + sort.Search(len(list)-at, func(i int) bool { return f.processOf(list[at+i]) > p })
		to := at + sort.Search(end-at, func(i int) bool { return list[at+i] >= id })
		if to > at && p != own {
			k := list[to-1]
			before := f.order.HappenedBefore(int(f.moves[k].event), int(f.moves[id].event))
			if !ok || before && !proved || before == proved && k > best {
				best, ok, proved = k, true, before
			}
		}
		at = end
	}
	return best, ok
}

// After returns where the content of a move went to.
func (f *Flow) After(id int) []Edge {
	m := &f.moves[id]
	switch {
	case m.at == reset:
		return nil
	case m.write():
		return f.delivered(id)
	case id+1 < len(f.moves) && f.moves[id+1].event == m.event && f.moves[id+1].write():
		return []Edge{f.whole(id, id+1, Copied)}
	case m.class == 0:
		return nil
	}
	return f.passedOn(id)
}

// delivered returns who took in what a move wrote.
func (f *Flow) delivered(id int) (out []Edge) {
	switch f.objects[f.moves[id].object].Kind {
	case Stream:
		return f.transported(id)
	case Socket:
		for _, r := range f.packets[uint32(id)] {
			out = append(out, f.whole(id, int(r), Sent))
		}
		return out
	}
	return f.readBack(id)
}

// passedOn returns the writes whose content came from a move that read: they are among the
// later writes of the same or of related content.
func (f *Flow) passedOn(id int) (out []Edge) {
	var later []uint32
	for _, class := range f.related(f.moves[id].class) {
		for _, k := range f.movesNear(class, uint32(id)) {
			if int(k) > id && f.moves[k].write() {
				later = append(later, k)
			}
		}
	}
	later = append(later, f.changedBy[uint32(id)]...)
	slices.Sort(later)
	for _, k := range slices.Compact(later) {
		for _, e := range f.Before(int(k)) {
			if e.From == id {
				out = append(out, e)
			}
		}
	}
	return out
}

// related returns a class and those that have a link from it or to it.
func (f *Flow) related(class uint32) []uint32 {
	classes := []uint32{class}
	for _, l := range f.relation.of(class) {
		classes = append(classes, l.b)
	}
	for _, l := range f.relation.back.of(class) {
		if a := f.relation.list[l].a; !slices.Contains(classes, a) {
			classes = append(classes, a)
		}
	}
	return classes
}

// movesNear returns the moves of a class. Of a class with too many it returns those of the
// process of move id alone, from that move on.
func (f *Flow) movesNear(class, id uint32) []uint32 {
	list := f.byClass.of(class)
	if len(list) <= maxSteps {
		return list
	}
	p := f.processOf(id)
	from := sort.Search(len(list), func(i int) bool { return f.processOf(list[i]) >= p })
	to := from + sort.Search(len(list)-from, func(i int) bool { return f.processOf(list[from+i]) > p })
	list = list[from:to]
	at, _ := slices.BinarySearch(list, id)
	return list[at:min(len(list), at+maxSteps)]
}

// readBack returns who read from a file what a move wrote.
func (f *Flow) readBack(id int) (out []Edge) {
	m := &f.moves[id]
	if m.at < 0 {
		return nil
	}
	list := f.touching(m)
	at, _ := slices.BinarySearch(list, uint32(id))
	left := spans{{m.at, m.end()}}
	for i := at + 1; i < len(list) && len(left) > 0; i++ {
		v := &f.moves[list[i]]
		switch {
		case v.at == reset:
			left = left.without(v.bytes(), 1<<62)
		case v.at < 0:
		case v.write():
			left = left.without(v.at, v.end())
		default:
			if n := left.overlap(v.at, v.end()); n > 0 {
				start := max(v.at, m.at)
				out = append(out, Edge{From: id, To: int(list[i]), Why: Stored, Bytes: n, Of: v.bytes(), Similarity: 1,
					Off: start - v.at, FromOff: start - m.at})
			}
		}
	}
	return out
}
