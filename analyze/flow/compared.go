// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
)

// leastShare is the part of what a process took in from one object that it has to give out at another,
// so that what is missing there is a finding: 4 of 5.
const leastShareOf, leastShareHas = 5, 4

// rareChanged is the part of a process's writes to one object that may have changed bytes: of more it is
// the program's way.
const rareChanged = 4

// damagedBits is how many bits of a byte fail at once, and are not another letter or digit that was chosen.
const damagedBits = 2

// comparisons looks for bytes that processes did not give out as they had taken them in, where
// writes are divided otherwise than reads. Those that are not were compared on the way.
func (w *finder) comparisons() {
	f := w.f
	for _, p := range slices.Sorted(maps.Keys(f.compared)) {
		c := f.compared[p]
		edits := w.passedChanged(p, c)
		for _, to := range slices.Sorted(maps.Keys(c.pieces)) {
			if !edits[to] { // else what is not there is there in another form
				w.notPassed(p, to, c)
			}
		}
	}
}

// passedChanged reports writes that differ from what was taken in, unless the program changes what it passes
// on on purpose: it returns at which objects.
func (w *finder) passedChanged(p uint32, c *comparison) (edits map[uint32]bool) {
	f := w.f
	edits = map[uint32]bool{}
	count, others := map[uint32]int{}, map[uint32][]uint32{}
	for _, k := range w.differ[p] {
		others[f.moves[k].object] = append(others[f.moves[k].object], k)
	}
	for _, k := range slices.Sorted(maps.Keys(c.writes)) {
		x, object := c.writes[k], f.moves[k].object
		_, found := f.changed[k]
		switch {
		case found:
		case x.verdict == passedOn:
			count[object]++
		case x.verdict == passedOther && x.change.diff.Differ > 0 && w.mayChange(p, k, x):
			others[object] = append(others[object], k)
			f.changed[k] = x.change
			f.changedBy[x.change.from] = append(f.changedBy[x.change.from], k)
		}
	}
	for _, object := range slices.Sorted(maps.Keys(others)) {
		list := others[object]
		slices.Sort(list)
		if f.encoded(object) { // what is encoded anew has another checksum
			list = slices.DeleteFunc(list, func(k uint32) bool { return f.changed[k].diff.Differ >= checksumBytes })
		}
		if f.encodesTo(p, object, c) || f.edited(list, count[object]) {
			edits[object] = true
			continue
		}
		for _, k := range list {
			d := f.changed[k]
			f.addChange(int(k), &f.moves[k], &d)
		}
	}
	return edits
}

// edited reports whether a program changes what it passes on on purpose: more than a few of its writes, of
// which there are others without a change, and not as damage does; or one field of them.
func (f *Flow) edited(list []uint32, same int) bool {
	places, masks, damaged, seen := map[int]bool{}, map[byte]bool{}, 0, 0
	for _, k := range list {
		c := f.changed[k]
		d := &c.diff
		if d.Unseen || d.Context >= min(len(d.After), len(d.Before)) {
			continue
		}
		mask := d.After[d.Context] ^ d.Before[d.Context]
		seen, places[d.FromFirst], masks[mask] = seen+1, true, true
		if d.Differ == 1 && bits.OnesCount8(mask) <= damagedBits {
			damaged++
		}
	}
	if seen >= leastPassed && 4*len(places) <= seen { // a counter, an address, a checksum
		return len(masks) > 1 || damaged < seen
	}
	// A cipher, a compressor or a program that writes texts anew changes more than a bit, and more of them.
	return seen > max(2, same/rareChanged) && (4*damaged < 3*seen || 2*len(places) < seen)
}

// mayChange reports whether what a process took in is there to be given out as it is: not if both are
// files, and not if it made it itself, or asked for it.
func (w *finder) mayChange(p, k uint32, x *passedWrite) bool {
	f := w.f
	m, v := &f.moves[k], &f.moves[x.change.from]
	if f.objects[m.object].Kind == File && f.objects[v.object].Kind == File || f.made(v.class, p) {
		return false
	}
	reply, ok := w.versions.reply(f, m.object)
	return !ok || v.object != reply || !w.versions.asks[onObject{p, m.object}]
}

// checksumBytes is the size of the checksums of what is compressed.
const checksumBytes = 4

// missing is bytes, one behind the other, that were taken in and not given out.
type missing struct {
	read   uint32 // the one of them that has most of it
	off    int64  // where it begins there
	most   int64  // how much
	reads  []uint32
	bytes  int64
	tail   bool        // they begin with the last bytes of a read
	within bool        // these are its own, and no trailer
	a, b   passedPiece // before them, and behind
}

// passedPair is a process, and objects from which it takes in and at which it gives out.
type passedPair struct{ process, from, to uint32 }

// notPassed reports what a process took in and did not give out at an object, although it gave out what
// was before and behind it.
func (w *finder) notPassed(p, to uint32, c *comparison) {
	f := w.f
	byObject := map[uint32][]passedPiece{}
	for _, x := range c.pieces[to] {
		from := f.moves[x.read].object
		if f.objects[from].Kind != File || f.objects[to].Kind != File {
			byObject[from] = append(byObject[from], x)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(byObject)) {
		if len(byObject[from]) < leastPassed || w.asked(p, to) {
			continue
		}
		reads, list, ok := w.missingOf(p, from, byObject[from])
		if !ok {
			continue
		}
		w.divided[passedPair{p, from, to}] = true
		list = slices.DeleteFunc(list, func(z missing) bool { return !w.isMissing(p, to, &z) })
		if len(list) > max(1, reads/rareMissing) ||
			(f.encoded(from) || f.encoded(to)) && rareMissing*len(list) > reads {
			continue
		}
		for i := range list {
			w.addMissing(from, to, reads, &list[i])
		}
	}
}

// gaps is a search for what stands between the pieces of an object that a process gave out.
type gaps struct {
	f            *Flow
	pieces       []passedPiece // by their place in the object
	at           int           // the next one
	now          missing
	open         bool // now has bytes up to here
	list         []missing
	total, has   int64
	reads        int // of data
	parts, tails int // reads of which something was given out, and those of which not the end
}

// missingOf returns the parts of what was taken in from an object that are in no piece but between
// pieces, and how many reads of data there are; ok is false if much is in no piece.
func (w *finder) missingOf(p, from uint32, pieces []passedPiece) (reads int, list []missing, ok bool) {
	f := w.f
	slices.SortStableFunc(pieces, func(a, b passedPiece) int {
		return cmp.Or(cmp.Compare(a.read, b.read), cmp.Compare(a.off, b.off))
	})
	g := &gaps{f: f, pieces: pieces}
	first, last := pieces[0].read, pieces[len(pieces)-1].read
	for _, k := range f.byProcess.of(p) {
		m := &f.moves[k]
		if k >= first && k <= last && !m.write() && m.object == from && m.class != 0 && f.view(m.class) != nil {
			g.read(k, m.bytes())
		}
	}
	if leastShareOf*g.has < leastShareHas*g.total {
		return g.reads, nil, false
	}
	for i := range g.list { // of reads that usually have no trailer, the last bytes are missing, too
		g.list[i].within = g.list[i].within || g.list[i].tail && g.tails <= max(1, g.parts/rareMissing)
	}
	return g.reads, g.list, true
}

// read takes the next read of n bytes.
func (g *gaps) read(k uint32, n int64) {
	g.total += n
	if n >= smallest {
		g.reads++
	}
	end := int64(0)
	for ; g.at < len(g.pieces) && g.pieces[g.at].read == k; g.at++ {
		x := &g.pieces[g.at]
		g.miss(k, end, x.off)
		if g.open && x.end > max(end, x.off) {
			if g.now.b = *x; g.now.bytes >= smallest {
				g.list = append(g.list, g.now)
			}
			g.open = false
		}
		g.has += max(x.end-max(x.off, end), 0)
		end = max(end, x.end)
	}
	if end > 0 {
		if g.parts++; end < n {
			g.tails++
		}
	}
	g.miss(k, end, n)
}

// miss takes bytes of a read that are in no piece.
func (g *gaps) miss(k uint32, from, to int64) {
	if from >= to || g.at == 0 { // nothing is known of what was before the first piece
		return
	}
	now := &g.now
	if !g.open {
		g.open, *now = true, missing{a: g.pieces[g.at-1], tail: from > 0, within: from > 0 && to-from >= nearGap}
	}
	if to-from >= chatter { // words of a protocol have their place here, and are not passed on
		now.bytes += to - from
	}
	now.reads = append(now.reads, k)
	if to-from > now.most {
		now.most, now.read, now.off = to-from, k, from
	}
}

// isMissing reports whether bytes that no write has were not given out in another way: the pieces before
// and behind them lie one behind the other, but for a header and a trailer.
func (w *finder) isMissing(p, to uint32, z *missing) bool {
	f := w.f
	class := f.moves[z.read].class
	if z.a.write > z.b.write || f.takenIn(class, p) > 1 || f.contents.empty[class] {
		return false
	}
	content := f.view(class)
	middle := content[z.off+z.most/2:]
	if bytes.Count(content, middle[:min(len(middle), smallest)]) > 1 { // periodic: any of it may be what is missing
		return false
	}
	between := z.b.at - z.a.at - (z.a.end - z.a.off)
	list := f.byProcess.of(p)
	at, _ := slices.BinarySearch(list, z.a.write)
	for _, k := range list[at:] {
		if k >= z.b.write || between > 2*nearGap {
			break
		}
		if m := &f.moves[k]; m.write() && m.at != reset && m.object == to {
			between += m.bytes()
		}
	}
	return between <= 2*nearGap
}

// addMissing adds a finding.
func (w *finder) addMissing(from, to uint32, reads int, z *missing) {
	f := w.f
	for _, k := range z.reads {
		w.missed[k] = true
	}
	y := &relay{passing: &passing{w: w, from: from}, to: to}
	had, gave := y.verbs()
	x := Finding{Problem: Lost, Moves: []int{int(z.read), int(z.a.write), int(z.b.write)}, Bytes: z.bytes,
		Confidence: Medium,
		Text: fmt.Sprintf("%s %s %d bytes (%s) that it did not %s %s, although it did so with what was before "+
			"and after", f.who(int(z.read)), had, z.bytes, f.name(&f.objects[from]), gave, f.name(&f.objects[to])),
		Decide: "whether the process drops or holds back such messages on purpose (its log, its answer)"}
	if z.within {
		x.Problem = Truncated
		x.Decide = "whether the rest was given out later, by another way"
	}
	if reads >= 4*leastPassed {
		x.Confidence = High
	}
	f.add(x)
}
