// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Origins finds which bytes of a content stood in others before, wherever they stood
// there: exactly, byte by byte.
//
// Contents are cut into pieces where a rolling hash of the last 64 bytes says so (Gear;
// Xia et al., Ddelta, 2014), so a run of bytes that two contents share is cut alike in
// both, but for its first 64 bytes. Pieces are looked up by hash, compared, and
// extended to both sides as far as the bytes agree. Shared runs that hold a whole piece
// are found: with the default of 128 bytes a piece, nearly all of 512 bytes, and whole contents of
// any size.
type Origins struct {
	o      OriginOptions
	mask   uint64
	heads  map[uint64]uint32 // by hash of a piece: its last place, plus 1
	places []place
	bytes  func(id uint32) []byte
	seen   map[diagonal]int // for Find: up to where a content was matched
	lost   uint64
}

// OriginOptions for NewOrigins. Zero values are the defaults.
type OriginOptions struct {
	// Piece is the mean length of pieces, in bytes: a power of two from 32 to 64 Ki. 0 is
	// 128. An index has about 40 bytes for each.
	Piece int
	// MinMatch is the shortest match that is reported, in bytes. 0 is 32.
	MinMatch int
	// MaxPlaces limits the places that are remembered for one piece, the first ones, for
	// content that is everywhere. What is left out is counted. 0 is 16.
	MaxPlaces int
}

type place struct {
	id   uint32
	off  uint32
	len  uint32
	next uint32 // place of the same piece before it, plus 1
}

// Match is a run of bytes of a content that stands in another, which is as long as can be.
type Match struct {
	Off    int    // in the content that was asked for, in bytes
	Len    int    // bytes
	Source uint32 // id of the other
	From   int    // where it stands there, in bytes
}

// NewOrigins returns an empty index. bytes returns a content that was added: the same for as
// long as the index is used.
func NewOrigins(o *OriginOptions, contents func(id uint32) []byte) (*Origins, error) {
	x := &Origins{bytes: contents, heads: map[uint64]uint32{}, seen: map[diagonal]int{}}
	if o != nil {
		x.o = *o
	}
	if x.o.Piece == 0 {
		x.o.Piece = 128
	}
	if x.o.MinMatch == 0 {
		x.o.MinMatch = 32
	}
	if x.o.MaxPlaces == 0 {
		x.o.MaxPlaces = 16
	}
	if p := x.o.Piece; p < 32 || p > 64<<10 || p&(p-1) != 0 {
		return nil, fmt.Errorf("pieces of %d bytes: powers of two from 32 to %d are possible", p, 64<<10)
	}
	if x.o.MinMatch < 1 || x.o.MaxPlaces < 1 {
		return nil, fmt.Errorf("matches from %d bytes on, %d places of a piece: both are to be positive", x.o.MinMatch,
			x.o.MaxPlaces)
	}
	// The upper bits of the hash depend on all of the last 64 bytes.
	x.mask = uint64(x.o.Piece-1) << (64 - bitsOf(x.o.Piece))
	return x, nil
}

func bitsOf(power int) (n int) {
	for ; power > 1; power >>= 1 {
		n++
	}
	return n
}

// maxPieces is how many mean lengths a piece has at most. Longer ones, of bytes that repeat,
// are cut where the hash is least in the second half of that length, at the last such place:
// at the same phase of the period in each content, whatever stands in front of it.
const maxPieces = 8

// gear holds a random number for each byte.
var gear = func() (t [256]uint64) {
	for i := range t {
		t[i] = mix(uint64(i+1) * golden)
	}
	return t
}()

// pieces calls f with the bounds of each piece of content. Its ends are bounds, too.
func (x *Origins) pieces(content []byte, f func(from, to int)) {
	longest := maxPieces * x.o.Piece
	from, h := 0, uint64(0)
	least, leastAt := uint64(math.MaxUint64), 0
	for i := 0; i < len(content); i++ {
		h = h<<1 + gear[content[i]]
		end := i + 1
		if end-from > longest/2 && h <= least {
			least, leastAt = h, end
		}
		if h&x.mask != 0 && end-from < longest {
			continue
		}
		if h&x.mask != 0 {
			end, h, i = leastAt, least, leastAt-1
		}
		f(from, end)
		from, least = end, math.MaxUint64
	}
	if from < len(content) {
		f(from, len(content))
	}
}

// hashPiece is for looking up: what is found is compared.
func hashPiece(b []byte) uint64 {
	h := mix(uint64(len(b)) * golden)
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(b))
	}
	var last [8]byte
	copy(last[:], b)
	return mix(h ^ binary.LittleEndian.Uint64(last[:]))
}

// Add makes the bytes of a content to be found. Contents of 4 GiB and more are cut off
// there.
func (x *Origins) Add(id uint32) {
	content := x.bytes(id)
	content = content[:min(len(content), 1<<32-1)]
	x.pieces(content, func(from, to int) {
		key := hashPiece(content[from:to])
		first := x.heads[key]
		n := 0
		for at := first; at != 0; at = x.places[at-1].next {
			if n++; n >= x.o.MaxPlaces {
				x.lost++
				return
			}
		}
		x.places = append(x.places, place{id, uint32(from), uint32(to - from), first})
		x.heads[key] = uint32(len(x.places))
	})
}

// Lost returns how many places were not remembered because of MaxPlaces.
func (x *Origins) Lost() uint64 { return x.lost }

// diagonal is a way to lay one content on another.
type diagonal struct {
	id    uint32
	shift int
}

// Find appends to dst the longest runs of content that stand in contents that were added,
// in the order of their offsets, the longest first. Runs may overlap, if they come from
// different places.
func (x *Origins) Find(dst []Match, content []byte) []Match {
	at := len(dst)
	clear(x.seen)
	x.pieces(content, func(from, to int) {
		for at := x.heads[hashPiece(content[from:to])]; at != 0; at = x.places[at-1].next {
			p := x.places[at-1]
			d := diagonal{p.id, int(p.off) - from}
			if x.seen[d] >= to {
				continue
			}
			m, ok := x.extend(content, from, to, p)
			if !ok {
				continue
			}
			x.seen[d] = m.Off + m.Len
			if m.Len >= x.o.MinMatch || m.Len == len(content) {
				dst = append(dst, m)
			}
		}
	})
	slices.SortFunc(dst[at:], func(a, b Match) int {
		return cmp.Or(cmp.Compare(a.Off, b.Off), cmp.Compare(b.Len, a.Len), cmp.Compare(a.Source, b.Source),
			cmp.Compare(a.From, b.From))
	})
	return dst
}

// extend compares a piece with a place, and goes on to both sides.
func (x *Origins) extend(content []byte, from, to int, p place) (Match, bool) {
	source := x.bytes(p.id)
	start, end := int(p.off), int(p.off)+int(p.len)
	if end > len(source) || !bytes.Equal(content[from:to], source[start:end]) {
		return Match{}, false
	}
	for from > 0 && start > 0 && content[from-1] == source[start-1] {
		from, start = from-1, start-1
	}
	for to < len(content) && end < len(source) && content[to] == source[end] {
		to, end = to+1, end+1
	}
	return Match{Off: from, Len: to - from, Source: p.id, From: start}, true
}

// Cover returns how many bytes of a content the matches of one Find account for, each
// byte once.
func Cover(matches []Match) (n int) {
	end := 0
	for _, m := range matches {
		if to := m.Off + m.Len; to > end {
			n += to - max(m.Off, end)
			end = to
		}
	}
	return n
}
