// SPDX-License-Identifier: Apache-2.0

package linearize

import (
	"bytes"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// span is the range of a file that a call reads or writes, to excluded.
type span struct {
	file     int32 // -1: none
	from, to int64
	writes   bool
}

const endless = 1 << 62

// spanOf returns what a call reads or writes of a file's content. What it copies from is
// not followed.
func (s *footprint) spanOf(ev *event.Event) span {
	none := span{file: -1}
	if ev.Errno != 0 {
		return none
	}
	moved := ev.Ret > 0
	switch s.class {
	case classRead, classWrite:
		if moved && s.off >= 0 {
			return span{s.file, s.off, s.off + ev.Ret, s.class == classWrite}
		}
	case classCopy:
		if moved && s.to >= 0 && s.toOff >= 0 {
			return span{s.to, s.toOff, s.toOff + ev.Ret, true}
		}
	case classResize:
		if s.op == event.OpFtruncate {
			return span{s.file, int64(ev.Args[1]), endless, true}
		}
		if ev.Args[1]&^fallocKeepSize != 0 {
			return span{s.file, int64(ev.Args[2]), endless, true} // what is behind may move
		}
	case classTruncate:
		if s.file >= 0 {
			return span{s.file, int64(ev.Args[1]), endless, true}
		}
	case classOpen:
		if s.file >= 0 && s.flags&event.OpenTrunc != 0 {
			return span{s.file, 0, endless, true}
		}
	}
	return none
}

func (a *span) meets(b *span) bool {
	return a.file == b.file && a.from < b.to && b.from < a.to
}

// collide finds out whether a call and one that returned before it, but not before it was
// made, read or wrote the same bytes. Only the last calls on the file are compared.
func (s *state) collide(sl *slot) {
	const most = 64
	f := &s.files[sl.span.file]
	sl.prev, sl.prevN = f.last, f.lastN
	f.last, f.lastN = sl, sl.n
	at, n := sl.prev, sl.prevN
	for range most {
		// The memory of a call that has left the window may be another's now.
		if at == nil || at.n != n || at.exit <= sl.ev.Enter {
			return
		}
		if (at.span.writes || sl.span.writes) && at.span.meets(&sl.span) {
			at.racy, sl.racy = true, true
			c := &s.cells[f.content]
			c.racing, s.racing = sl.n, max(s.racing, sl.n)
		}
		at, n = at.prev, at.prevN
	}
}

// A version of a file's content is a write and the version before it. The value of a
// file's content cell is the number of its version in the present search, counted from 1.
type version struct {
	before int64
	write  *slot
}

// contents follows what files hold in a search.
type contents struct {
	load     func(b *event.Buf, dst []byte) ([]byte, error)
	versions []version
	known    map[version]int64
	loaded   int64 // bytes in memory
}

// maxLoaded bounds the bytes of one search's calls that are compared.
const maxLoaded = 64 << 20

func (c *contents) begin() {
	c.versions, c.loaded = c.versions[:0], 0
	if c.known == nil {
		c.known = map[version]int64{}
	}
	clear(c.known)
}

// addVersion makes a new version of what a call writes.
func (c *contents) addVersion(s *state, sl *slot) {
	cell := s.files[sl.span.file].content
	v := version{write: sl}
	if was := s.get(cell); was > 0 {
		v.before = was
	}
	n, ok := c.known[v]
	if !ok {
		c.versions = append(c.versions, v)
		n = int64(len(c.versions))
		c.known[v] = n
	}
	s.set(cell, n)
}

// matches reports whether what a call read can have been there: of each byte what was
// written last, as far as it was raced for.
func (c *contents) matches(s *state, sl *slot) bool {
	const most = 256
	left := [8]span{sl.span}
	parts := left[:1]
	n := s.get(s.files[sl.span.file].content)
	for range most {
		if n <= 0 || len(parts) == 0 {
			return true
		}
		v := &c.versions[n-1]
		n = v.before
		for i := 0; i < len(parts); i++ {
			p := parts[i]
			if !p.meets(&v.write.span) {
				continue
			}
			from, to := max(p.from, v.write.span.from), min(p.to, v.write.span.to)
			if (v.write.racy || sl.racy) && c.differs(sl, v.write, from, to) {
				return false
			}
			// What is left of the part, if that can be said.
			parts = slices.Delete(parts, i, i+1)
			i--
			if p.from < from && len(parts) < cap(left[:]) {
				parts = append(parts, span{p.file, p.from, from, false})
			}
			if to < p.to && len(parts) < cap(left[:]) {
				parts = append(parts, span{p.file, to, p.to, false})
			}
		}
	}
	return true
}

// differs reports whether two calls moved different bytes in a range, as far as is known.
func (c *contents) differs(a, b *slot, from, to int64) bool {
	x, y := c.bytes(a), c.bytes(b)
	lo, hi := from-a.span.from, to-a.span.from
	if lo < 0 || hi > int64(len(x)) {
		return false
	}
	lo2, hi2 := from-b.span.from, to-b.span.from
	if lo2 < 0 || hi2 > int64(len(y)) {
		return false
	}
	return !bytes.Equal(x[lo:hi], y[lo2:hi2])
}

// bytes returns what a call moved, nil if that is not known.
func (c *contents) bytes(sl *slot) []byte {
	if sl.loaded {
		return sl.data
	}
	sl.loaded, sl.data = true, sl.data[:0]
	b := sl.ev.BufArg(contentArg(&sl.footprint))
	if b == nil || c.loaded+b.Len > maxLoaded {
		return nil
	}
	switch {
	case int64(len(b.Inline)) == sl.ev.Ret && len(b.Refs) == 0:
		sl.data = append(sl.data, b.Inline...)
	case c.load != nil && b.Kept() == sl.ev.Ret:
		data, err := c.load(b, sl.data)
		if err != nil {
			data = data[:0]
		}
		sl.data = data
	}
	c.loaded += int64(len(sl.data))
	return sl.data
}

func contentArg(s *footprint) int { return effect.ContentArg(s.op) }

// premature reports whether a read saw what a write holds that has no place yet: most
// likely it came after it.
func (r *search) premature(s *state, sl *slot) bool {
	if !sl.racy || sl.span.writes || !s.participates(s.files[sl.span.file].content) {
		return false
	}
	const most = 256
	for i := r.first; i < min(len(r.calls), r.first+most) && r.early[i] <= sl.exit; i++ {
		w := r.calls[i]
		if w.placed || !w.span.writes || w.ev.Enter > sl.exit || !w.span.meets(&sl.span) {
			continue
		}
		from, to := max(w.span.from, sl.span.from), min(w.span.to, sl.span.to)
		if w.span.to < endless && len(r.content.bytes(sl)) > 0 && len(r.content.bytes(w)) > 0 &&
			!r.content.differs(sl, w, from, to) {
			return true
		}
	}
	return false
}
