// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/hex"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
)

// piece is a row of the table content: bytes that an event moved and that the tape
// has, all in one place, or the hash of bytes that it does not have.
type piece struct {
	seq         uint64
	arg, part   uint8
	out         bool
	pos, offset int64 // within the buffer, within the file or -1
	length      int64
	chunk       uint64 // 0: inline, or only hashed
	chunkOffset uint32
	hash        string
	inline      []byte
	space       []byte
}

// maxPiece limits the pieces that long chunks are cut into, and so the memory that the
// bytes of a chunk of rows need.
const maxPiece = 64 << 10

var directionNames = []string{"read", "write"}

func contentColumns() []column[piece] {
	stored := func(p *piece) bool { return p.chunk != 0 }
	return []column[piece]{
		numberColumn("seq", func(p *piece) uint64 { return p.seq }),
		numberColumn("arg", func(p *piece) uint8 { return p.arg }),
		numberColumn("part", func(p *piece) uint8 { return p.part }),
		enumColumn("direction", directionNames, func(p *piece) int {
			if p.out {
				return 0
			}
			return 1
		}),
		numberColumn("pos", func(p *piece) int64 { return p.pos }),
		maybeColumn("file_offset", func(p *piece) (int64, bool) { return notNegative(p.offset) }),
		numberColumn("length", func(p *piece) int64 { return p.length }),
		maybeColumn("chunk", func(p *piece) (uint64, bool) { return p.chunk, stored(p) }),
		maybeColumn("chunk_offset", func(p *piece) (uint32, bool) { return p.chunkOffset, stored(p) }),
		textColumn("hash", func(p *piece) string { return p.hash }),
		bytesColumn("bytes", func(p *piece) []byte { return p.inline }),
	}
}

// pieces makes the rows of an event's content.
func (s *source) pieces(ev *event.Event) error {
	spec := ev.Spec()
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		part, arg := event.SplitPart(int(b.Arg))
		// What moves inside the kernel stands with the descriptor that it comes from.
		inKernel := spec.Class == event.Data && part == 0 && b.Kind == event.KindBuf
		if !spec.IsContent(int(b.Arg)) && !inKernel {
			continue
		}
		p := piece{seq: ev.Seq, arg: uint8(arg), part: uint8(part), out: b.Dir == event.Out}
		add := func(length int64, chunk uint64, chunkOffset uint32, hash string, inline []byte) error {
			row, err := s.content.begin()
			if err != nil {
				return err
			}
			space := row.space
			*row = p
			row.length, row.chunk, row.chunkOffset, row.hash = length, chunk, chunkOffset, hash
			if row.space = space; inline != nil {
				row.space = append(space[:0], inline...)
				row.inline = row.space
			}
			if row.offset = -1; ev.Offset >= 0 {
				row.offset = ev.Offset + p.pos
			}
			s.content.commit()
			p.pos += length
			return nil
		}
		if n := len(b.Inline); n > 0 {
			if err := add(int64(n), 0, 0, s.hashOf(b.Inline), b.Inline); err != nil {
				return err
			}
		}
		for _, r := range b.Refs {
			if r.Chunk == 0 {
				p.pos += int64(r.Len)
				continue
			}
			hash := s.hashOfChunk(r.Chunk)
			for r.Len > 0 {
				n := min(r.Len, maxPiece)
				if err := add(int64(n), r.Chunk, r.Off, hash, nil); err != nil {
					return err
				}
				r.Off, r.Len = r.Off+n, r.Len-n
			}
		}
		for k := range b.Hashes {
			length := max(min(event.HashBytes, b.Len-p.pos), 0)
			if b.Hashes[k].Missing() {
				p.pos += length
				continue
			}
			if err := add(length, 0, 0, hex.EncodeToString(b.Hashes[k][:]), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *source) hashOf(b []byte) string {
	sum := blake3.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// hashOfChunk returns the hash of a whole chunk, "" if the content is damaged there. A
// chunk that was just asked for costs nothing: reads of the same bytes come together.
func (s *source) hashOfChunk(id uint64) string {
	r := &s.recent[id%uint64(len(s.recent))]
	if r.chunk != id {
		sum, err := s.hashes.Hash(id)
		if err != nil {
			return ""
		}
		r.chunk, r.hash = id, hex.EncodeToString(sum[:])
	}
	return r.hash
}
