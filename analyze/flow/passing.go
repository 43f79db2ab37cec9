// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of the search for messages that a process passed on, and did not.
const (
	leastPassed    = 6       // messages that have to be passed on before a missing one is a finding
	rareMissing    = 8       // one of so many may be missing, duplicated or truncated: of more it is the program's way
	mostMessages   = 1 << 16 // messages of an object that are looked at
	chatter        = 32      // bytes: shorter writes are words of a protocol
	mostGap        = 1 << 20 // bytes between two messages that are searched
	gapWrites      = 64      // and writes
	leastSigned    = 0.93    // resemblance of a content and the same with a header, by signatures
	leastBeginning = 0.3     // resemblance of a content and its beginning, by signatures
	nextMoves      = 64      // moves behind a message that are searched for all of it
)

// passing is the messages that a process took in from one object, and what it gave out of them.
type passing struct {
	w       *finder
	process uint32
	from    uint32 // object
	items   []item
	outs    map[uint32][]out // by object, in order of the items
}

// item is a message that was taken in.
type item struct {
	move  uint32
	again bool // the process took in the same content more than once
}

// out is a part of an item, from off to end, that move gave out behind at bytes of its own.
type out struct {
	item     int
	move     uint32
	off, end int64
	at       int64
	changed  bool // it is not quite the same, so that the part says nothing
}

// passings finds messages that processes did not pass on, or passed on otherwise than the others.
func (w *finder) passings() {
	f := w.f
	for o := range f.objects {
		byProcess := map[uint32][]item{}
		for _, k := range f.byObject.of(uint32(o)) {
			m := &f.moves[k]
			if m.write() || m.class == 0 || m.bytes() < smallest || f.contents.empty[m.class] {
				continue
			}
			p := f.processOf(k)
			if list := byProcess[p]; len(list) < mostMessages {
				byProcess[p] = append(list, item{move: k, again: f.takenIn(m.class, p) > 1})
			}
		}
		for _, p := range slices.Sorted(maps.Keys(byProcess)) {
			x := &passing{w: w, process: p, from: uint32(o), items: byProcess[p], outs: map[uint32][]out{}}
			if len(x.items) < leastPassed || f.objects[o].Kind == File && !x.sequential() {
				continue
			}
			for i := range x.items {
				x.follow(i)
			}
			for _, to := range slices.Sorted(maps.Keys(x.outs)) {
				x.judge(to)
			}
		}
	}
}

// takenIn returns how often a process took in a content; it counts to 2.
func (f *Flow) takenIn(class, process uint32) (n int) {
	for _, k := range f.ofProcess(class, process) {
		if !f.moves[k].write() {
			if n++; n == 2 {
				break
			}
		}
	}
	return n
}

// ofProcess returns the moves of a class by a process, in order.
func (f *Flow) ofProcess(class, process uint32) []uint32 {
	list := f.byClass.of(class)
	from, _ := slices.BinarySearchFunc(list, process,
		func(k, p uint32) int { return cmp.Compare(f.processOf(k), p) })
	to, _ := slices.BinarySearchFunc(list, process+1,
		func(k, p uint32) int { return cmp.Compare(f.processOf(k), p) })
	return list[from:to]
}

// sequential reports whether a file was read from its beginning to its end, each part once.
func (x *passing) sequential() bool {
	end := int64(-1)
	for _, it := range x.items {
		m := &x.w.f.moves[it.move]
		if m.at < 0 || m.at < end {
			return false
		}
		end = m.end()
	}
	return true
}

// follow finds what the process gave out of an item.
func (x *passing) follow(i int) {
	f := x.w.f
	r := x.items[i].move
	class, n := f.moves[r].class, f.moves[r].bytes()
	add := func(k uint32, o out) {
		if m := &f.moves[k]; m.write() && k > r && m.at != reset {
			o.item, o.move = i, k
			x.outs[m.object] = append(x.outs[m.object], o)
		}
	}
	each := func(class uint32, o out) {
		list := f.ofProcess(class, x.process)
		at, _ := slices.BinarySearch(list, r)
		for _, k := range list[at:min(at+maxSteps, len(list))] {
			add(k, o)
		}
	}
	each(class, out{end: n})
	for _, k := range f.relation.back.of(class) {
		l := &f.relation.list[k]
		o := out{off: int64(l.from), end: int64(l.from) + int64(l.run), at: int64(l.off)}
		if l.bytes == 0 || l.bytes != l.run {
			o = out{end: n, at: int64(l.off), changed: !f.sameButFrame(class, l)}
			if at := f.within(class, l.a); at >= 0 {
				o = out{end: n, at: at}
			}
		}
		each(l.a, o)
	}
	x.framed(i, add)
	for _, k := range f.changedBy[r] {
		add(k, out{end: n, changed: true})
	}
}

// sameButFrame reports whether signatures of two contents are as much alike as those of a content and the
// same with a header or trailer of up to nearGap bytes.
func (f *Flow) sameButFrame(class uint32, l *link) bool {
	a, b := &f.contents.classes[class], &f.contents.classes[l.a]
	return a.kind == kindSignature && b.kind == kindSignature && l.bytes == 0 &&
		b.len >= a.len && b.len <= a.len+nearGap && l.near >= leastSigned
}

// within returns where in content b all of content a stands, -1 if it does not.
func (f *Flow) within(a, b uint32) int64 {
	x, y := f.view(a), f.view(b)
	if x == nil || len(y) < len(x) {
		return -1
	}
	return int64(bytes.Index(y, x))
}

// framed finds an item in one of the next moves, with a header or a trailer: content that is
// periodic or short is not found by its pieces. A move whose content the process took in as it is
// passes that on, and is not searched: reading it again costs as much as the rest of the analysis.
func (x *passing) framed(i int, add func(k uint32, o out)) {
	f := x.w.f
	r := x.items[i].move
	m := &f.moves[r]
	for k := r + 1; int(k) < len(f.moves) && k-r <= nextMoves; k++ {
		v := &f.moves[k]
		if !v.write() || v.class == m.class || v.class == 0 || f.processOf(k) != x.process ||
			v.bytes() < m.bytes() || v.bytes() > m.bytes()+mostFrame || f.takenIn(v.class, x.process) > 0 {
			continue
		}
		if list := x.outs[v.object]; slices.ContainsFunc(list[max(0, len(list)-nextMoves):],
			func(o out) bool { return o.item == i && o.move == k && !o.changed }) {
			continue
		}
		if at := f.within(m.class, v.class); at >= 0 {
			add(k, out{end: m.bytes(), at: at})
		}
	}
}

// relay is a passing to one object.
type relay struct {
	*passing
	to     uint32
	whole  []out            // outputs of whole items, by item
	any    []bool           // of each item: something of it was given out there
	used   []uint32         // moves to the object that have something of an item, in order
	writes []uint32         // all moves of the process to it, in order
	count  int              // whole items
	byItem [][2]int         // of each item: its part of whole
	extra  int64            // bytes of their own that moves usually have
	byMove map[uint32][]int // what of whole each move has
	kind   *itemKind
}

// itemKind is what items that were passed on have in common.
type itemKind struct {
	least, most int64  // bytes
	lead        []byte // their first bytes
	seen, text  int    // items that were looked at, and those that are readable
}

// judge looks at what a process gave out at one object.
func (x *passing) judge(to uint32) {
	f := x.w.f
	y := &relay{passing: x, to: to, any: make([]bool, len(x.items)), byItem: make([][2]int, len(x.items)),
		byMove: map[uint32][]int{}}
	for _, o := range x.outs[to] {
		y.any[o.item] = true
		y.used = append(y.used, o.move)
		if n := f.moves[x.items[o.item].move].bytes(); !o.changed && 8*(o.end-o.off) >= 7*n {
			y.whole = append(y.whole, o)
		}
	}
	slices.SortStableFunc(y.whole, func(a, b out) int {
		return cmp.Or(cmp.Compare(a.item, b.item), cmp.Compare(a.move, b.move))
	})
	for i, o := range y.whole {
		y.byMove[o.move] = append(y.byMove[o.move], i)
		if i == 0 || y.whole[i-1].item != o.item {
			y.byItem[o.item][0] = i
			y.count++
		}
		y.byItem[o.item][1] = i + 1
	}
	if y.count < leastPassed || y.asked() || f.encodes(x.from, to, y.asIs(), len(y.items)) {
		return
	}
	slices.Sort(y.used)
	y.used = slices.Compact(y.used)
	for _, k := range f.byObject.of(to) {
		if m := &f.moves[k]; m.write() && m.at != reset && f.processOf(k) == x.process {
			y.writes = append(y.writes, k)
		}
	}
	slices.Sort(y.writes)
	y.usualExtra()
	y.missing()
	y.twice()
	y.order()
}

// asIs returns how many items were given out to their last byte.
func (y *relay) asIs() (n int) {
	for i := range y.items {
		if slices.ContainsFunc(y.outputs(i), func(o out) bool {
			return o.end-o.off == y.w.f.moves[y.items[i].move].bytes()
		}) {
			n++
		}
	}
	return n
}

// outputs returns the whole outputs of an item.
func (y *relay) outputs(i int) []out { return y.whole[y.byItem[i][0]:y.byItem[i][1]] }

// usualExtra finds how much moves have that is not of the item: headers and trailers.
func (y *relay) usualExtra() {
	var list []int64
	for _, o := range y.whole {
		list = append(list, y.w.f.moves[o.move].bytes()-(o.end-o.off))
	}
	slices.Sort(list)
	y.extra = 2*list[len(list)/2] + smallest
}

// missing reports items between others of which nothing or only the beginning was given out.
func (y *relay) missing() {
	var lost, short []Finding
	// Where few items are given out as they are, because they are divided anew, comparisons looked at
	// the bytes.
	if y.w.divided[passedPair{y.process, y.from, y.to}] && rareMissing*y.count < (rareMissing-1)*len(y.items) {
		return
	}
	last := -1 // item before
	for i := range y.items {
		if len(y.outputs(i)) > 0 {
			last = i
			continue
		}
		next := i + 1
		for next < len(y.items) && len(y.outputs(next)) == 0 {
			next++
		}
		if last < 0 || next == len(y.items) || y.items[i].again || y.w.missed[y.items[i].move] || !y.sameKind(i) {
			continue
		}
		a, b := y.outputs(last)[0].move, y.outputs(next)[0].move
		if a >= b {
			continue // not one behind the other
		}
		if z, ok := y.beginning(i, a, b); ok {
			short = append(short, z)
		} else if z, ok := y.hashedInstead(y.items[i].move, y.between(a, b)); ok {
			short = append(short, z)
		} else if !y.any[i] && y.gone(i, a, b) {
			lost = append(lost, y.lost(i, a, b))
		}
	}
	for _, list := range [][]Finding{lost, short} {
		if len(list) <= max(1, y.count/rareMissing) {
			for _, z := range list {
				y.w.f.add(z)
			}
		}
	}
}

// sameKind reports whether an item is as the others that were passed on: it has their first bytes
// where these have some in common, and their size, and is text if they are.
func (y *relay) sameKind(i int) bool {
	if y.kind == nil {
		y.kind = y.usualKind()
	}
	k := y.kind
	m := &y.w.f.moves[y.items[i].move]
	if m.bytes() < k.least/2 || m.bytes() > 2*k.most {
		return false
	}
	b := y.w.f.view(m.class)
	if b == nil || k.seen == 0 {
		return b == nil
	}
	return bytes.HasPrefix(b, k.lead) && Readable(b) == (2*k.text > k.seen)
}

// usualKind looks at the items that were passed on: at the bytes of the first ones.
func (y *relay) usualKind() *itemKind {
	f := y.w.f
	kind := &itemKind{least: 1 << 62}
	for i := range y.items {
		if len(y.outputs(i)) == 0 {
			continue
		}
		m := &f.moves[y.items[i].move]
		kind.least, kind.most = min(kind.least, m.bytes()), max(kind.most, m.bytes())
		if kind.seen >= 64 {
			continue
		}
		b := f.view(m.class)
		if b == nil {
			continue
		}
		head := b[:min(len(b), 8)]
		if kind.seen == 0 {
			kind.lead = bytes.Clone(head)
		}
		n := 0
		for n < min(len(kind.lead), len(head)) && kind.lead[n] == head[n] {
			n++
		}
		kind.lead = kind.lead[:n]
		if kind.seen++; Readable(b) {
			kind.text++
		}
	}
	return kind
}

// between returns the moves to the object from a to b: both of them too.
func (y *relay) between(a, b uint32) []uint32 {
	from, _ := slices.BinarySearch(y.writes, a)
	to, _ := slices.BinarySearch(y.writes, b)
	return y.writes[from:min(to+1, len(y.writes))]
}

// gone reports whether nothing between two moves can be an item: no bytes of it stand there, and
// nothing unexplained, which may be a compressed form of it.
func (y *relay) gone(i int, a, b uint32) bool {
	f := y.w.f
	content := f.view(f.moves[y.items[i].move].class)
	list := y.between(a, b)
	if len(list) > gapWrites {
		return false
	}
	total := int64(0)
	for _, k := range list {
		m := &f.moves[k]
		if total += m.bytes(); m.class == 0 || total > mostGap {
			return false
		}
		if _, ok := slices.BinarySearch(y.used, k); !ok && m.bytes() >= chatter {
			return false
		} else if ok && y.unexplained(k) > y.extra {
			return false
		}
		if content != nil && mayHold(f.view(m.class), content, y.itemsOf(k)) {
			return false
		}
	}
	return !y.elsewhere(i)
}

// unexplained returns how many bytes of a move are of no item.
func (y *relay) unexplained(k uint32) int64 {
	n := y.w.f.moves[k].bytes()
	for _, i := range y.byMove[k] {
		n -= y.whole[i].end - y.whole[i].off
	}
	return n
}

// itemsOf returns the contents of the items that a move has in whole.
func (y *relay) itemsOf(k uint32) (list [][]byte) {
	for _, i := range y.byMove[k] {
		list = append(list, y.w.f.view(y.w.f.moves[y.items[y.whole[i].item].move].class))
	}
	return list
}

// mayHold reports whether bytes from any part of a content stand in b, but not in the others that
// do.
func mayHold(b, content []byte, others [][]byte) bool {
	const parts = 16
	for p := range parts {
		at := p * max(len(content)-probeBytes, 0) / parts
		part := content[at:min(at+probeBytes, len(content))]
		if changes(part) >= probeBytes/4 && bytes.Contains(b, part) &&
			!slices.ContainsFunc(others, func(o []byte) bool { return bytes.Contains(o, part) }) {
			return true
		}
	}
	return false
}

// elsewhere reports whether the item went to another object, as is the way of this process: there
// go not the same items as here.
func (y *relay) elsewhere(i int) bool {
	f := y.w.f
	for to, outs := range y.outs {
		if to == y.to {
			continue
		}
		here, both, has := 0, 0, false
		last := -1
		for _, o := range outs {
			has = has || o.item == i
			if n := f.moves[y.items[o.item].move].bytes(); o.changed || 8*(o.end-o.off) < 7*n || o.item == last {
				continue
			}
			last = o.item
			here++
			if len(y.outputs(o.item)) > 0 {
				both++
			}
		}
		if has && (here < leastPassed || both < here-max(1, here/rareMissing)) {
			return true
		}
	}
	return false
}

// lost makes a finding.
func (y *relay) lost(i int, a, b uint32) Finding {
	f := y.w.f
	r := y.items[i].move
	m := &f.moves[r]
	had, gave := y.verbs()
	return Finding{Problem: Lost, Moves: []int{int(r), int(a), int(b)}, Bytes: m.bytes(),
		Text: fmt.Sprintf("%s %s %d bytes (%s) that it did not %s %s, although it did so with %d others, "+
			"before and after", f.who(int(r)), had, m.bytes(), f.name(&f.objects[y.from]), gave,
			f.name(&f.objects[y.to]), y.count),
		Confidence: y.confidence(),
		Decide:     "whether the process drops or holds back such messages on purpose (its log, its answer)"}
}

// confidence is high if many items were passed on, and their bytes are known.
func (y *relay) confidence() Confidence {
	if y.count >= 4*leastPassed && y.w.f.view(y.w.f.moves[y.whole[0].move].class) != nil {
		return High
	}
	return Medium
}

// verbs says how the process took in and gave out.
func (y *relay) verbs() (had, gave string) {
	had, gave = "received", "send to"
	if y.w.f.objects[y.from].Kind == File {
		had = "read"
	}
	if y.w.f.objects[y.to].Kind == File {
		gave = "write to"
	}
	return had, gave
}

// beginning looks for a move between two others that ends with the beginning of an item, and is
// not continued.
func (y *relay) beginning(i int, a, b uint32) (z Finding, ok bool) {
	f := y.w.f
	r := y.items[i].move
	content := f.view(f.moves[r].class)
	list := y.between(a, b)
	if content == nil && f.isSignature(f.moves[r].class) {
		return y.signedBeginning(r, list)
	}
	if len(content) < smallest || len(list) > gapWrites {
		return z, false
	}
	for n, k := range list {
		if k == a || k == b {
			continue
		}
		v := f.view(f.moves[k].class)
		at := bytes.Index(v[:min(len(v), mostFrame+probeBytes)], content[:probeBytes])
		if at < 0 || len(v)-at >= len(content) || len(v)-at < smallest || !bytes.HasPrefix(content, v[at:]) {
			continue
		}
		rest := content[len(v)-at:]
		for _, later := range list[n+1:] {
			next := f.view(f.moves[later].class)
			if bytes.Contains(next[:min(len(next), endBytes+probeBytes)], rest[:min(len(rest), probeBytes)]) {
				return z, false // it goes on
			}
			if bytes.Contains(f.view(f.moves[later].class), rest[:min(len(rest), probeBytes)]) &&
				2*y.unexplained(later) >= int64(min(len(rest), smallest)) {
				return z, false // in parts
			}
		}
		return y.truncated(r, k, int64(len(rest)), High), true
	}
	return z, false
}

// truncated makes a finding of a read of which move k has all but the last bytes.
func (y *relay) truncated(r, k uint32, rest int64, c Confidence) Finding {
	f := y.w.f
	had, gave := y.verbs()
	n := f.moves[r].bytes()
	return Finding{Problem: Truncated, Moves: []int{int(r), int(k)}, Bytes: rest,
		Text: fmt.Sprintf("%s %s %d bytes (%s), of which it did %s %s only the first %d, unlike %d others",
			f.who(int(r)), had, n, f.name(&f.objects[y.from]), gave, f.name(&f.objects[y.to]), n-rest, y.count),
		Confidence: c,
		Decide:     "whether the rest was given out later, by another way"}
}

// asked reports whether what the process sends are answers: from the other side it receives more than
// a word or two that always come again. What is asked for, and how often, is the other side's choice.
func (y *relay) asked() bool {
	return y.w.asked(y.process, y.to)
}

// asked is relay.asked for a process and an object.
func (w *finder) asked(process, object uint32) bool {
	f := w.f
	if f.objects[object].Kind == File {
		return false
	}
	v := &w.versions
	from, to, ok := strings.Cut(f.objects[object].Name, "->")
	back, known := v.back[to+"->"+from]
	if !ok || !known {
		return !ok
	}
	words := map[uint32]bool{}
	for _, k := range f.byObject.of(back) {
		if m := &f.moves[k]; !m.write() && f.processOf(k) == process {
			if words[m.class] = true; m.class == 0 || len(words) > 2 {
				return true
			}
		}
	}
	return false
}
