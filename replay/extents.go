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
	if len(b.Inline) > 0 {
		for _, s := range x.settled.missing(off, off+int64(len(b.Inline))) {
			part := b.Inline[s.from-off : s.to-off]
			x.pieces = append(x.pieces, piece{off: s.from, chunk: inline(part), len: uint32(len(part))})
		}
	}
	at := off
	for _, r := range b.Refs {
		if r.Chunk != 0 {
			for _, s := range x.settled.missing(at, at+int64(r.Len)) {
				x.pieces = append(x.pieces, piece{off: s.from, chunk: r.Chunk, skip: r.Off + uint32(s.from-at), len: uint32(s.to - s.from)})
			}
		}
		at += int64(r.Len)
	}
	x.settled.add(off, off+b.Len)
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
