package replay

import (
	"slices"

	"iotape/event"
)

// extents is what is known of a file's initial content: the pieces that were read
// before anything wrote there.
type extents struct {
	settled spans   // ranges whose initial content is known or does not matter any more
	pieces  []piece // initial content, in order of discovery
	unknown spans   // initial content that was read, and that the tape does not have
}

// piece is a part of a stored chunk and its place in a file.
type piece struct {
	off   int64
	chunk uint64
	skip  uint32 // bytes of the chunk before it
	len   uint32
}

// read adds what a read at off returned.
func (x *extents) read(off int64, b *event.Buf, inline func([]byte) uint64) {
	at := off + int64(len(b.Inline))
	for _, s := range x.settled.missing(off, at) {
		part := b.Inline[s.from-off : s.to-off]
		x.pieces = append(x.pieces, piece{off: s.from, chunk: inline(part), len: uint32(len(part))})
	}
	x.settled.add(off, at)
	for _, r := range b.Refs {
		end := at + int64(r.Len)
		if r.Chunk == 0 {
			x.unread(at, end)
		} else {
			for _, s := range x.settled.missing(at, end) {
				x.pieces = append(x.pieces, piece{off: s.from, chunk: r.Chunk, skip: r.Off + uint32(s.from-at), len: uint32(s.to - s.from)})
			}
			x.settled.add(at, end)
		}
		at = end
	}
	x.unread(at, off+b.Len)
}

// unread notes that the tape does not have what was read. A later read may, or the
// state after the recording.
func (x *extents) unread(from, to int64) {
	for _, s := range x.settled.missing(from, to) {
		x.unknown.add(s.from, s.to)
	}
}

// made returns the initial content that a replay has to make up.
func (x *extents) made() spans {
	m := slices.Clone(x.unknown)
	for _, p := range x.pieces {
		m.remove(p.off, p.off+int64(p.len))
	}
	return m
}

// wrote notes that the content of a range is the trace's own from now on.
func (x *extents) wrote(from, to int64) { x.settled.add(from, to) }

// span is a range of bytes, to excluded.
type span struct{ from, to int64 }

// spans is a sorted list of ranges that neither touch nor overlap.
type spans []span

// at returns the index of the first span that ends at or after off.
func (s spans) at(off int64) int {
	i, _ := slices.BinarySearchFunc(s, off, func(e span, off int64) int {
		if e.to < off {
			return -1
		}
		return 1
	})
	return i
}

// add merges a range in.
func (s *spans) add(from, to int64) {
	if to <= from {
		return
	}
	i := s.at(from)
	j := i
	for j < len(*s) && (*s)[j].from <= to {
		from, to = min(from, (*s)[j].from), max(to, (*s)[j].to)
		j++
	}
	*s = slices.Replace(*s, i, j, span{from, to})
}

// remove cuts a range out.
func (s *spans) remove(from, to int64) {
	if to <= from {
		return
	}
	i := s.at(from)
	if i < len(*s) && (*s)[i].to == from {
		i++
	}
	j := i
	var rest spans
	for ; j < len(*s) && (*s)[j].from < to; j++ {
		if e := (*s)[j]; e.from < from {
			rest = append(rest, span{e.from, from})
		}
		if e := (*s)[j]; e.to > to {
			rest = append(rest, span{to, e.to})
		}
	}
	*s = slices.Replace(*s, i, j, rest...)
}

// overlap reports whether a part of a range is in the list.
func (s spans) overlap(from, to int64) bool {
	i := s.at(from)
	if i < len(s) && s[i].to == from {
		i++
	}
	return from < to && i < len(s) && s[i].from < to
}

// missing returns the parts of a range that are not in the list.
func (s spans) missing(from, to int64) []span {
	var out []span
	for i := s.at(from); i < len(s) && s[i].from < to; i++ {
		if s[i].from > from {
			out = append(out, span{from, s[i].from})
		}
		from = max(from, s[i].to)
	}
	if from < to {
		out = append(out, span{from, to})
	}
	return out
}
