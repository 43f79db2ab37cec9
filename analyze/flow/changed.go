// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// changed looks for something that a process took in and gave out changed.
func (w *finder) changed(i int, m *move, p uint32) bool {
	f := w.f
	// Where bytes within differ, passedChanged looks at it.
	x := f.compareWrites(p).writes[uint32(i)]
	if x != nil && x.verdict != notPassedOn {
		return false
	}
	c := origin{f: f, m: m, process: p, unknown: spans{{0, m.bytes()}}, compared: x}
	c.reply, c.asks = w.versions.reply(f, m.object)
	c.asks = c.asks && w.versions.asks[onObject{p, m.object}]
	type candidate struct {
		from  uint32
		shift int64
	}
	var candidates []candidate
	for _, l := range f.relation.of(m.class) {
		from, ok := f.lastRead(l.b, p, uint32(i))
		if !ok {
			continue
		}
		if l.bytes > 0 {
			c.unknown = c.unknown.without(int64(l.off), int64(l.off)+int64(l.run))
			if f.moves[from].bytes() == int64(l.bytes) { // all of it is in here
				continue
			}
		}
		candidates = append(candidates, candidate{from, int64(l.from) - int64(l.off)})
	}
	if len(c.unknown) == 0 {
		return false
	}
	for _, x := range candidates {
		c.consider(x.from, x.shift)
	}
	recent := w.recent[p]
	if m.bytes() >= 8 && m.bytes() <= mostAligned {
		for _, r := range recent {
			if r != 0 {
				c.align(r - 1)
			}
		}
	}
	// What comes back is like what the process made itself, and so is what it makes next:
	// numbered messages, for one.
	if c.best.diff.Same <= c.own || !c.best.diff.Unseen && c.innocent(recent[:]) {
		return false
	}
	f.changed[uint32(i)] = c.best
	f.changedBy[c.best.from] = append(f.changedBy[c.best.from], uint32(i))
	w.differ[p] = append(w.differ[p], uint32(i))
	return true
}

// addChange adds the finding that move i gave out otherwise what its process had taken in.
func (f *Flow) addChange(i int, m *move, c *change) {
	from, to := &f.objects[f.moves[c.from].object], &f.objects[m.object]
	gave, had := "sent (%s)", "received (%s)"
	if to.Kind == File {
		gave = "wrote to %s"
	}
	if from.Kind == File {
		had = "read of %s"
	}
	d := c.diff
	f.add(Finding{Problem: Changed, Moves: []int{int(c.from), i}, Bytes: int64(d.Differ), Diff: &d,
		Text: fmt.Sprintf("what %s %s is not quite what it had %s: %s",
			f.who(i), fmt.Sprintf(gave, f.name(to)), fmt.Sprintf(had, f.name(from)), &d)})
}

// origin is the search for the read that a write is a changed copy of.
type origin struct {
	f       *Flow
	m       *move // the write
	process uint32
	unknown spans // of the write: what does not stand in anything that the process took in
	best    change
	// compared is what is known of the write by comparison with all that was taken in; nil: nothing.
	compared *passedWrite
	own      int // bytes in common with what the process made itself, or asked for

	// asks: the process sent first on the connection, so that what comes back, by the stream reply,
	// are answers. That a later request is like an answer to an earlier one is no passing on.
	asks  bool
	reply uint32
}

const (
	// mostAligned is the size up to which a write is laid on the last reads, in bytes.
	mostAligned = 64 << 10
	// leastAligned is the size from which on contents of different lengths are compared:
	// shorter ones are as much header as content.
	leastAligned = 64
	// mostFrame is how many bytes of headers and trailers are between a short content and a write.
	mostFrame = 1024
	// Bytes of a write, from several parts of it, are looked up in a read to see how it lies there.
	probes, probeBytes = 8, 16
)

// align lays the write on a read. Of contents of one length it needs no more than half of some
// bytes to agree. Else the write may have a header or a trailer, or be a part of what was read.
func (c *origin) align(from uint32) {
	f, v := c.f, &c.f.moves[from]
	if c.m.bytes() == v.bytes() {
		if f.contents.mayBeLike(c.m.class, v.class) {
			c.consider(from, 0)
		}
		return
	}
	if least, most := min(c.m.bytes(), v.bytes()), max(c.m.bytes(), v.bytes()); least < leastAligned ||
		most > 4*least+mostFrame {
		return
	}
	a, b := f.view(c.m.class), f.view(v.class)
	shifts := append(probe(a, b), 0, int64(len(b)-len(a)))
	slices.Sort(shifts)
	for _, shift := range slices.Compact(shifts) {
		if mayAlign(a, b, shift) {
			c.consider(from, shift)
		}
	}
}

// probe returns shifts that lay bytes of content a on the same bytes of b.
func probe(a, b []byte) (shifts []int64) {
	for i := range probes {
		found := 0
		for at := i * len(a) / probes; at+probeBytes <= min(len(a), (i+1)*len(a)/probes) &&
			found < 2; at += probeBytes {
			part := a[at : at+probeBytes]
			if changes(part) < probeBytes/2 {
				continue
			}
			found++
			if k := bytes.Index(b, part); k >= 0 {
				shifts = append(shifts, int64(k-at))
			}
		}
	}
	return shifts
}

// consider takes a read whose content, shifted, may be that of the write.
func (c *origin) consider(from uint32, shift int64) {
	f, v := c.f, &c.f.moves[from]
	// What is read of files is there to be changed, and written again.
	if f.objects[v.object].Kind == File && f.objects[c.m.object].Kind == File {
		return
	}
	made := f.made(v.class, c.process) || c.asks && v.object == c.reply
	a, b := f.view(c.m.class), f.view(v.class)
	if a == nil || b == nil {
		if !made && c.best.diff.Differ == 0 {
			c.resembling(from)
		}
		return
	}
	within := laid(a, b, shift)
	if head := rewrittenHead(a, b); head > 0 {
		within[0] = max(within[0], head)
	}
	d := compareWithin(a, b, shift, within)
	if len(a) != len(b) && reframed(a, b, shift, within) {
		return
	}
	if !f.oneChanged(&d, min(len(a), len(b))) || !c.better(&d, from) || !c.unexplained(a, b, shift, within) {
		return
	}
	if made {
		c.own = max(c.own, d.Same)
		return
	}
	c.best = change{from, shift, d}
}

// better reports whether a read is a better source than the best one so far: more of it is the
// same, or less differs, or it came later.
func (c *origin) better(d *Diff, from uint32) bool {
	b := &c.best.diff
	return cmp.Or(cmp.Compare(d.Same, b.Same), cmp.Compare(b.Differ, d.Differ), cmp.Compare(from, c.best.from)) >= 0
}

// unexplained reports whether bytes that differ stand in nothing else that the process took in.
func (c *origin) unexplained(a, b []byte, shift int64, within span) bool {
	if c.compared != nil {
		known := spans{within}
		for _, u := range c.compared.unknown {
			known = known.without(u[0], u[1])
		}
		for _, k := range known {
			if !bytes.Equal(a[k[0]:k[1]], b[k[0]+shift:k[1]+shift]) {
				return false // it is not this content that was given out, but one that is like it
			}
		}
	}
	for _, u := range c.unknown {
		for i := max(u[0], within[0]); i < min(u[1], within[1]); i++ {
			if a[i] != b[i+shift] {
				return true
			}
		}
	}
	return false
}

// innocent reports whether the bytes in which the write differs from the best read stand as they
// are in another one of the last reads, or in front of or behind all of it: in a header or trailer.
func (c *origin) innocent(recent []uint32) bool {
	f := c.f
	a, b := f.view(c.m.class), f.view(f.moves[c.best.from].class)
	within := laid(a, b, c.best.shift)
	unknown := spans{within}
	for _, r := range recent {
		if r == 0 || f.moves[r-1].bytes() > maxSight {
			continue
		}
		source := f.view(f.moves[r-1].class)
		list := runs(a, source)
		for i, x := range list {
			from, to := int64(x.off), int64(x.off+x.len)
			if x.len < len(source) && x.len < len(a) && !telling(a[from:to]) {
				continue
			}
			if i == 0 && x.from == 0 && 2*x.len >= len(a) { // a header
				from = 0
			}
			if i == len(list)-1 && x.from+x.len == len(source) && 2*x.len >= len(a) { // a trailer
				to = int64(len(a))
			}
			unknown = unknown.without(from, to)
		}
	}
	for _, u := range unknown {
		if !bytes.Equal(a[u[0]:u[1]], b[u[0]+c.best.shift:u[1]+c.best.shift]) {
			return false
		}
	}
	return true
}

// reframed reports whether a write is a part of a read with a header or trailer of its own: all bytes
// that differ are its first ones, though the read has others before or more behind, or its last ones,
// though the read goes on. What is behind part is not compared: the rest of the write may be other
// parts, with headers of their own.
func reframed(a, b []byte, shift int64, part span) bool {
	n, more := int64(len(a)), int64(len(a))+shift < int64(len(b))
	first, last := int64(-1), int64(-1)
	for i := part[0]; i < part[1]; i++ {
		switch {
		case a[i] == b[i+shift]:
		case i < endBytes && (shift > 0 || shift == 0 && more):
			if first < 0 {
				first = i
			}
		case i >= n-endBytes && more:
			last = i
		default:
			return false
		}
	}
	return (first >= 0 || last >= 0) && first < anchor/2 && (last < 0 || last >= n-anchor/2)
}

// resembling takes a read of which, or of the write, no bytes are known.
func (c *origin) resembling(from uint32) {
	v := &c.f.moves[from]
	near := c.f.near(c.m.class, v.class)
	if near >= c.f.o.Threshold && v.bytes() == c.m.bytes() {
		c.best = change{from, 0, Diff{Unseen: true, Differ: 1, Same: int(near * float64(c.m.bytes()))}}
	}
}

// oneChanged reports whether two contents differ, but are one changed: by the bytes that tell
// something, and over most of the shorter one.
func (f *Flow) oneChanged(d *Diff, shorter int) bool {
	telling := float64(d.Same - d.Zeros)
	return d.Differ > 0 && telling >= f.o.Threshold*(telling+float64(d.Differ)) &&
		float64(d.Same+d.Differ) >= f.o.Threshold*float64(shorter)
}
