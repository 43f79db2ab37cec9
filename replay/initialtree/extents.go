// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"cmp"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
)

// extents is what is known of a file's initial content: the pieces that were read
// before anything wrote there.
type extents struct {
	settled effect.Spans // ranges whose initial content is known or does not matter any more
	pieces  []piece      // initial content, in order of discovery
	unknown effect.Spans // initial content that was read, and that the tape does not have
	holes   effect.Spans // ranges that lseek(2) said to hold no data
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
	for _, s := range x.settled.Missing(off, at) {
		part := b.Inline[s.From-off : s.To-off]
		x.pieces = append(x.pieces, piece{off: s.From, chunk: inline(part), len: uint32(len(part))})
	}
	x.settled.Add(off, at)
	for _, r := range b.Refs {
		end := at + int64(r.Len)
		if r.Chunk == 0 {
			x.unread(at, end)
		} else {
			for _, s := range x.settled.Missing(at, end) {
				x.pieces = append(x.pieces, piece{
					off: s.From, chunk: r.Chunk, skip: r.Off + uint32(s.From-at), len: uint32(s.To - s.From),
				})
			}
			x.settled.Add(at, end)
		}
		at = end
	}
	x.unread(at, off+b.Len)
}

// unread notes that the tape does not have what was read. A later read may, or the
// state after the recording.
func (x *extents) unread(from, to int64) {
	for _, s := range x.settled.Missing(from, to) {
		x.unknown.Add(s.From, s.To)
	}
}

// tainted returns the initial content that a replay has to make up.
func (x *extents) tainted() effect.Spans {
	m := slices.Clone(x.unknown)
	for _, p := range x.pieces {
		m.Remove(p.off, p.off+int64(p.len))
	}
	return m
}

// data returns the pieces that a file is made of, in order, without its holes: what
// was read there is zeros, and made of them would be data.
func (x *extents) data() []piece {
	slices.SortFunc(x.pieces, func(a, b piece) int { return cmp.Compare(a.off, b.off) })
	if len(x.holes) == 0 {
		return x.pieces
	}
	var out []piece
	for _, p := range x.pieces {
		for _, s := range x.holes.Missing(p.off, p.off+int64(p.len)) {
			out = append(out, piece{
				off: s.From, chunk: p.chunk, skip: p.skip + uint32(s.From-p.off), len: uint32(s.To - s.From),
			})
		}
	}
	return out
}

// wrote notes that the content of a range is the trace's own from now on.
func (x *extents) wrote(from, to int64) { x.settled.Add(from, to) }
