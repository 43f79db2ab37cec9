// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Limits of the comparison of what a process gave out with all that it had taken in.
const (
	mostTaken    = 8 << 20   // bytes taken in that are kept to be compared, the last ones
	mostPassedOn = 256 << 20 // bytes of a process, in and out, that are compared
	nearGap      = 32        // bytes: headers and trailers in a stream
	surePassed   = 64        // bytes that agree in a row, behind a gap, and prove where a write goes on
	leastTail    = 8         // the same at the end of a write
	farBytes     = 512       // of a write that are looked up in all that was taken in
	farPlaces    = 16        // of each row of the table that are looked at
	farLooks     = 8         // places for each byte of a write that are looked at; then one of each row
	leastBlocks  = 1 << 8    // rows of the table at first, a power of 2; there are four times as many, and so on

	innocentContext = 24 // bytes on each side of one that differs by which it is recognised elsewhere
)

// verdict says of a write what the process had taken in before.
type verdict uint8

const (
	notPassedOn verdict = iota // it is not, or not only, what was taken in
	passedOn                   // all of it was taken in, but for headers and trailers
	passedOther                // the same, but for bytes within
)

// passedWrite is a write that is compared with what was taken in.
type passedWrite struct {
	verdict verdict
	change  change // of passedOther: where it differs first
	// skipped is how many bytes within a read the write has other ones for, at its beginning: a header of
	// what was taken in, if there are many such writes, else changed bytes.
	skipped int
	// inserted is how many bytes stand in it between some that follow each other in a read: a header of a
	// part, if there are many such writes.
	inserted int
	// next is the write that goes on behind the last bytes, which are a trailer or changed, as change says.
	next    uint32
	unknown spans // of it, what stands in nothing that was taken in; of passedOn nil
	part    span  // of it, with the bytes that stand around what differs
}

// wholeRead is the writes that are reads.
var wholeRead = &passedWrite{verdict: passedOn}

// comparison is what a process gave out, compared with what it had taken in.
type comparison struct {
	writes map[uint32]*passedWrite
	pieces map[uint32][]passedPiece // of each object that it wrote to, in order
}

// passedPiece is bytes of a read that a write has.
type passedPiece struct {
	read, write uint32 // moves
	off, end    int64  // in the read
	at          int64  // in the write
}

// taken is what a process took in, one behind the other, and where its writes go on in it. Both are
// compared as sequences of bytes, so that it does not matter how they are divided into calls.
type taken struct {
	f        *Flow
	bytes    []byte
	reads    []takenRead
	last     map[uint32]int // of each class: where the last read of it begins
	blocks   []int32        // a table by blockKey, of blocks at multiples of runBlock: the last place of each, plus 1
	before   []int32        // of each block: the place before in its row of the table, plus 1
	work     int64
	looks    int            // places that may still be looked at for a write
	skips    map[skip]int   // how often
	trailers map[uint32]int // of each object: writes with a tail
	goesOn   map[uint32]int // of each object: where in bytes the next write is expected
	tails    map[uint32]tail
	comparison
}

// takenRead is a read, and where its bytes begin.
type takenRead struct {
	move uint32
	at   int
}

// skip is a number of bytes within a read that stand in no write to an object, but between what does; if
// it is negative, of bytes of writes that stand in no read.
type skip struct {
	object uint32
	bytes  int
}

// tail is the last bytes of a write, which are not those that follow in what was taken in: a trailer, or
// changed.
type tail struct {
	write uint32
	at    int // in what was taken in
	bytes int
}

// compareWrites compares the writes of a process with what it had taken in before.
func (f *Flow) compareWrites(process uint32) *comparison {
	if c, ok := f.compared[process]; ok {
		return c
	}
	if f.byProcess.first == nil {
		f.byProcess = group(len(f.procs), len(f.moves), func(i int) uint32 { return f.processOf(uint32(i)) })
	}
	t := &taken{f: f, blocks: make([]int32, leastBlocks), last: map[uint32]int{}, goesOn: map[uint32]int{},
		tails: map[uint32]tail{}, skips: map[skip]int{}, trailers: map[uint32]int{},
		comparison: comparison{map[uint32]*passedWrite{}, map[uint32][]passedPiece{}}}
	for _, k := range f.byProcess.of(process) {
		m := &f.moves[k]
		if m.at == reset || m.class == 0 || m.bytes() == 0 || m.bytes() > mostTaken/2 {
			continue
		}
		if t.work += m.bytes(); t.work > mostPassedOn {
			break
		}
		if m.write() && t.whole(k) {
			continue
		}
		b := f.view(m.class)
		if b == nil {
			continue
		}
		if m.write() {
			t.write(k, b)
		} else {
			t.take(k, b)
		}
	}
	t.judgeSkipped()
	f.compared[process] = &t.comparison
	return &t.comparison
}

// take adds a read.
func (t *taken) take(k uint32, b []byte) {
	if len(t.bytes)+len(b) > mostTaken {
		t.forget()
	}
	t.reads = append(t.reads, takenRead{k, len(t.bytes)})
	_, again := t.last[t.f.moves[k].class]
	t.last[t.f.moves[k].class] = len(t.bytes)
	t.bytes = append(t.bytes, b...)
	if len(t.bytes)/runBlock > len(t.blocks) {
		t.blocks = make([]int32, 4*len(t.blocks))
		for i := range t.before {
			t.index(i)
		}
	}
	for i := len(t.before); (i+1)*runBlock <= len(t.bytes); i++ {
		t.before = append(t.before, 0)
		if !again || i*runBlock < len(t.bytes)-len(b) { // else the copy before is found as well
			t.index(i)
		}
	}
}

// index puts a block into the table.
func (t *taken) index(block int) {
	at := block * runBlock
	row := t.row(t.bytes[at:])
	t.before[block], *row = *row, int32(at)+1
}

// row returns the row of the table for the block at the beginning of b.
func (t *taken) row(b []byte) *int32 { return &t.blocks[blockKey(b)>>32&uint64(len(t.blocks)-1)] }

// forget drops the first half of what was taken in.
func (t *taken) forget() {
	half := len(t.bytes) / 2
	first := 0
	for first < len(t.reads) && t.reads[first].at < half {
		first++
	}
	start := len(t.bytes)
	if first < len(t.reads) {
		start = t.reads[first].at
	}
	reads, left := slices.Clone(t.reads[first:]), bytes.Clone(t.bytes[start:])
	t.bytes, t.reads, t.before = t.bytes[:0], nil, t.before[:0]
	clear(t.blocks)
	clear(t.last)
	for i, r := range reads {
		end := len(left)
		if i+1 < len(reads) {
			end = reads[i+1].at - start
		}
		t.take(r.move, left[r.at-start:end])
	}
	for o, at := range t.goesOn {
		t.goesOn[o] = max(at-start, 0)
	}
	clear(t.tails)
}

// judgeSkipped finds out which of the writes that skipped bytes within a read changed these.
func (t *taken) judgeSkipped() {
	writes := map[uint32]int{}
	for k := range t.writes {
		writes[t.f.moves[k].object]++
	}
	for k, x := range t.writes {
		object := t.f.moves[k].object
		if x.next != 0 {
			if x.verdict = passedOther; t.trailers[object] > max(2, writes[object]/rareMissing) {
				x.verdict = passedOn
			}
		}
		if x.skipped > 0 && t.skips[skip{object, x.skipped}] <= max(2, writes[object]/rareMissing) {
			x.verdict = notPassedOn
		}
		if x.inserted > 0 && t.skips[skip{object, -x.inserted}] <= max(2, writes[object]/rareMissing) {
			x.verdict = notPassedOn
		}
		if x.verdict == passedOn {
			t.writes[k] = wholeRead
		}
	}
}

// blockKey is a hash of the first bytes.
//
//go:norace
func blockKey(b []byte) uint64 {
	x, y := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	return (x*0x9e3779b97f4a7c15 ^ y) * 0xff51afd7ed558ccd
}

// readAt returns the number of the read whose bytes stand at a place.
func (t *taken) readAt(at int) int {
	i, ok := slices.BinarySearchFunc(t.reads, at, func(r takenRead, at int) int { return r.at - at })
	if !ok {
		i--
	}
	return i
}

// divided reports whether a read ends between two places, or at the second.
func (t *taken) divided(from, to int) bool {
	return to >= len(t.bytes) || t.readAt(from) != t.readAt(to)
}

// endsAt reports whether a read ends at a place.
func (t *taken) endsAt(at int) bool { return at >= len(t.bytes) || t.reads[t.readAt(at)].at == at }

// piece is a run of bytes of a write that stands in what was taken in.
type piece struct{ off, at, len int }

// before reports whether a piece lies before another one, with no more than a header between them.
func (p piece) before(other piece) bool {
	off, at := other.off-p.off-p.len, other.at-p.at-p.len
	return off >= 0 && off <= nearGap && at >= 0 && at <= nearGap
}

// agree returns how many bytes of a from off on stand at a place of what was taken in.
func (t *taken) agree(a []byte, off, at int) (n int) {
	if at < 0 || at >= len(t.bytes) {
		return 0
	}
	return prefix(a[off:], t.bytes[at:])
}

// prefix returns how many bytes x and y begin with in common. The race detector, which does not look
// at it, would take most of the time of the tests here.
//
//go:norace
func prefix(x, y []byte) (n int) {
	for n+8 <= len(x) && n+8 <= len(y) && binary.LittleEndian.Uint64(x[n:]) == binary.LittleEndian.Uint64(y[n:]) {
		n += 8
	}
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

// whole takes a write that is a read, where it is expected or the last one.
func (t *taken) whole(k uint32) bool {
	m := &t.f.moves[k]
	at, ok := t.last[m.class]
	if !ok {
		return false
	}
	if next := t.goesOn[m.object]; next < len(t.bytes) {
		if r := t.reads[t.readAt(next)]; r.at == next && t.f.moves[r.move].class == m.class {
			at = next
		}
	}
	if old, ok := t.tails[m.object]; ok && old.at == at {
		t.writes[old.write].verdict = passedOn // a trailer
	}
	delete(t.tails, m.object)
	t.writes[k] = wholeRead
	t.keep(k, piece{0, at, int(m.bytes())})
	t.goesOn[m.object] = at + int(m.bytes())
	return true
}

// next finds the piece of a that follows off, where at is expected.
func (t *taken) next(a []byte, off, at int) (p piece, ok bool) {
	n := t.agree(a, off, at)
	if n >= surePassed || n > 0 && off+n == len(a) {
		return piece{off, at, n}, true
	}
	near, far := piece{off, at, n}, t.far(a, off)
	t.around(a, off, at, func(p piece) bool {
		if p.len > near.len {
			near = p
		}
		return true
	})
	t.around(a, off, at, func(p piece) bool { // a shorter one in front of it
		if p.len < leastTail || !p.before(near) {
			return true
		}
		near = p
		return false
	})
	ends := func(p piece) bool { return p.off+p.len == len(a) && p.len >= leastTail }
	if near.len >= surePassed || ends(near) && far.len <= near.len+nearGap ||
		near.len >= leastTail && near.before(far) {
		return near, true
	}
	if p = far; near.len >= far.len {
		p = near
	}
	return p, p.len >= leastRun
}

// around calls f with the pieces of a that begin within nearGap of off and of at, those with the least
// gaps first, until f returns false.
func (t *taken) around(a []byte, off, at int, f func(p piece) bool) {
	for gap := 1; gap <= 2*nearGap; gap++ {
		for skip := max(0, gap-nearGap); skip <= min(gap, nearGap) && off+skip < len(a); skip++ {
			p := piece{off: off + skip, at: at + gap - skip}
			if p.len = t.agree(a, p.off, p.at); p.len > 0 && !f(p) {
				return
			}
		}
	}
}

// far finds the longest run of the next bytes of a, anywhere in what was taken in.
func (t *taken) far(a []byte, off int) (best piece) {
	for i := off; i+runBlock <= min(len(a), off+farBytes); i++ {
		if i < best.off+best.len {
			continue
		}
		place, places := *t.row(a[i:]), farPlaces
		if t.looks <= 0 { // much of what was taken in resembles this write: pages of a database
			places = 1
		}
		for ; places > 0 && place != 0; places-- {
			t.looks--
			p := piece{i, int(place) - 1, t.agree(a, i, int(place)-1)}
			for p.len >= runBlock && p.off > off && p.at > 0 && a[p.off-1] == t.bytes[p.at-1] {
				p.off, p.at, p.len = p.off-1, p.at-1, p.len+1
			}
			if p.len > best.len {
				best = p
			}
			place = t.before[(place-1)/runBlock]
		}
	}
	return best
}

// write compares a write with what was taken in.
func (t *taken) write(k uint32, a []byte) {
	object := t.f.moves[k].object
	x := &passedWrite{verdict: passedOn}
	t.writes[k] = x
	if len(t.bytes) == 0 {
		x.verdict = notPassedOn
		return
	}
	at, off, same := t.goesOn[object], 0, 0
	t.looks = farLooks*len(a) + farPlaces*farBytes
	for off < len(a) {
		p, ok := t.next(a, off, at)
		if !ok {
			break
		}
		if off == 0 {
			at = t.endTail(k, p, at)
		}
		if n := p.at - at; n > 0 && n <= nearGap && !t.divided(at, p.at) {
			t.skips[skip{object, n}]++
		}
		t.insert(x, object, piece{off, at, p.off - off}, p)
		x.gap(t, a, piece{off, at, p.off - off}, p)
		if p.off > off {
			x.unknown = append(x.unknown, span{int64(off), int64(p.off)})
		}
		t.keep(k, p)
		same += p.len
		off, at = p.off+p.len, p.at+p.len
	}
	delete(t.tails, object)
	if off < len(a) {
		x.unknown = append(x.unknown, span{int64(off), int64(len(a))})
	}
	switch rest := len(a) - off; {
	case rest > endBytes || 2*same < len(a):
		x.verdict = notPassedOn
	case rest > 0 && !t.endsAt(at) && x.verdict == passedOn:
		x.verdict = notPassedOn // if what follows does not go on here
		t.tails[object] = tail{k, at, rest}
		t.trailers[object]++
	}
	if same > 0 {
		t.goesOn[object] = at
	}
}

// insert takes the bytes of a write before a piece, if they stand between some that follow each other.
func (t *taken) insert(x *passedWrite, object uint32, g, p piece) {
	if g.off > 0 && g.len > 0 && g.len <= nearGap && p.at == g.at && !t.endsAt(g.at) && x.inserted == 0 {
		x.inserted = g.len
		t.skips[skip{object, -g.len}]++
	}
}

// keep keeps a piece of a write.
func (t *taken) keep(k uint32, p piece) {
	object := t.f.moves[k].object
	for i := t.readAt(p.at); p.len > 0; i++ {
		end := len(t.bytes)
		if i+1 < len(t.reads) {
			end = t.reads[i+1].at
		}
		n := min(p.len, end-p.at)
		off := int64(p.at - t.reads[i].at)
		t.pieces[object] = append(t.pieces[object], passedPiece{t.reads[i].move, k, off, off + int64(n),
			int64(p.off)})
		p.off, p.at, p.len = p.off+n, p.at+n, p.len-n
	}
}

// gap takes the bytes of a write before a piece: a header, or a trailer of what is before. They
// follow what stands at g.at.
func (x *passedWrite) gap(t *taken, a []byte, g, p piece) {
	if g.len == 0 || x.verdict == notPassedOn {
		return
	}
	if g.len > nearGap {
		x.verdict = notPassedOn
		return
	}
	skipped := p.at - g.at
	switch {
	case skipped > 0 && t.divided(g.at, p.at): // one header in the place of another
	case skipped != g.len && (skipped <= 0 || skipped > nearGap) && (g.off == 0 || t.endsAt(g.at)):
	case skipped == 0 && g.off > 0 && g.len == x.inserted:
	case skipped > 0 && skipped <= nearGap && g.off == 0:
		x.skipped = skipped
	case skipped == g.len && g.off > 0 && p.off+p.len <= len(a):
		x.other(t, a, g, p)
	default:
		x.verdict = notPassedOn
	}
}

// other takes bytes of a write before a piece that stand in the place of as many others.
func (x *passedWrite) other(t *taken, a []byte, g, p piece) {
	if x.verdict == passedOn && !t.innocent(a, g, p) {
		x.verdict = passedOther
		x.note(t, a, g, p)
	}
}

// innocent reports whether the bytes of a write in a gap before a piece are no change of what stands at
// g.at: they and their neighbours stand elsewhere in what was taken in, so that it is another content,
// like this one, that was given out; or the letters of names of fields are of another case.
func (t *taken) innocent(a []byte, g, p piece) bool {
	from, to := max(g.off-innocentContext, 0), min(p.off+min(p.len, innocentContext), len(a))
	if g.off-from+to-p.off >= innocentContext && bytes.Contains(t.bytes, a[from:to]) {
		return true
	}
	shift := int64(g.at - g.off)
	return fieldNames(a, t.bytes, shift, span{int64(g.off), int64(p.off)})
}

// note keeps where a write differs first.
func (x *passedWrite) note(t *taken, a []byte, g, p piece) {
	r := t.reads[t.readAt(g.at)]
	shift := int64(g.at - r.at - g.off)
	b := t.f.view(t.f.moves[r.move].class)
	if int64(len(a))+shift <= 0 || shift >= int64(len(b)) {
		return
	}
	x.part = overlap(a, b, shift)
	// What lies around is headers of other parts.
	x.part = span{max(x.part[0], int64(g.off-contextAfter)), min(x.part[1], int64(p.off+min(p.len, contextAfter)))}
	x.change = change{r.move, shift, compareWithin(a, b, shift, x.part)}
}

// endTail takes the first piece of write k, behind a tail. The tail is a trailer if what was taken in goes
// on there. If it goes on behind as many bytes, these may have changed. It returns where k is expected.
func (t *taken) endTail(k uint32, p piece, at int) int {
	old, ok := t.tails[t.f.moves[k].object]
	if !ok {
		return at
	}
	x := t.writes[old.write]
	switch {
	case p.at == old.at:
		x.verdict = passedOn
	case p.at == old.at+old.bytes && !t.divided(old.at, p.at-1):
		a := t.f.view(t.f.moves[old.write].class)
		x.next = k
		x.note(t, a, piece{len(a) - old.bytes, old.at, old.bytes}, piece{len(a), p.at, 0})
		return p.at
	}
	return at
}
