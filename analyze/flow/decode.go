// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"hash/maphash"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// mostEncoded is how many bytes of one side of an object are decoded.
const mostEncoded = mostDecoded

// decoding is an object whose content can be decoded: each frame in it, wherever it stands.
type decoding struct {
	object uint32
	e      *encoding
	sides  [][]uint32   // moves
	frames []uint64     // hashes of what is decoded, as it is
	outs   [][][][]byte // what each has when it is decoded: one content for each block that was flushed
}

// decodedPart is bytes of a side up to end: decoded, or, if no frame is there, as they are.
type decodedPart struct {
	end     int
	decoded bool
	last    bool // a frame ends here that begins
	begin   int  // there
	out     []byte
}

// decode decodes the content of the moves of an object. It returns whether anything of it is encoded, and
// whether all of that can be decoded.
func (f *Flow) decode(d *decoding, left *int64) (any, ok bool, err error) {
	if d.sides, ok = f.sidesOf(d.object); !ok {
		return false, false, nil
	}
	all, ends, parts := make([][]byte, len(d.sides)), make([][]int, len(d.sides)), make([][]decodedPart, len(d.sides))
	longest := 0
	for i, side := range d.sides {
		for _, k := range side {
			b, err := f.contents.bytes(f.moves[k].class)
			if err != nil {
				return false, false, err
			}
			if len(all[i])+len(b) > mostEncoded {
				return false, false, nil
			}
			all[i] = append(all[i], b...)
			ends[i] = append(ends[i], len(all[i]))
		}
		if len(all[i]) > len(all[longest]) {
			longest = i
		}
	}
	for i := range d.sides {
		var whole bool
		if parts[i], whole = d.e.parts(all[i], ends[i], left); !whole {
			ok = false
		}
	}
	d.frames = frameHashes(all[longest], parts[longest])
	if !ok || len(d.frames) == 0 {
		return len(d.frames) > 0, false, nil
	}
	for i := range d.sides {
		if i != longest {
			parts[i] = common(parts[i], parts[longest])
		}
		d.outs = append(d.outs, divide(all[i], ends[i], parts[i], f.objects[d.object].Kind == Stream))
	}
	return true, true, nil
}

// common returns what a side has in common with one that goes on: the end of it may be a part of a frame.
func common(side, longest []decodedPart) []decodedPart {
	for i, p := range side {
		at, ok := slices.BinarySearchFunc(longest, p.end, func(x decodedPart, end int) int { return x.end - end })
		if ok || at < len(longest) && !p.decoded && !longest[at].decoded {
			continue
		}
		return append(side[:i], decodedPart{end: side[len(side)-1].end, decoded: true})
	}
	return side
}

// frameHashes returns a hash of each frame, as it is.
func frameHashes(all []byte, parts []decodedPart) (list []uint64) {
	for _, p := range parts {
		if p.last {
			list = append(list, maphash.Bytes(frameSeed, all[p.begin:p.end]))
		}
	}
	return list
}

var frameSeed = maphash.MakeSeed()

// parts decodes all frames in bytes. It returns false if there is one at the beginning of a move that cannot be
// decoded: it was changed, or cut off, or it is divided.
func (e *encoding) parts(all []byte, ends []int, left *int64) (parts []decodedPart, ok bool) {
	at, move := 0, 0
	ok = true
	for at < len(all) {
		next := e.find(all[at:])
		if next < 0 {
			break
		}
		next += at
		if list, end := e.frame(all, next, left); list != nil {
			if next > at {
				parts = append(parts, decodedPart{end: next})
			}
			parts, at = append(parts, list...), end
			continue
		}
		for move < len(ends) && ends[move] <= next {
			move++
		}
		begin := 0
		if move > 0 {
			begin = ends[move-1]
		}
		ok = ok && next-begin > nearGap
		parts = append(parts, decodedPart{end: next + 1})
		at = next + 1
	}
	if at < len(all) {
		parts = append(parts, decodedPart{end: len(all)})
	}
	return parts, ok && *left >= 0
}

// frame decodes the frame at a place, block by block. It returns where the frame ends, or nil if it is none.
// The end may be missing, at the end of the bytes.
func (e *encoding) frame(all []byte, at int, left *int64) (parts []decodedPart, end int) {
	ends, whole := e.unit(all[at:])
	if len(ends) == 0 {
		return nil, 0
	}
	list := make([][]byte, len(ends))
	from := 0
	for i, end := range ends {
		list[i], from = all[at+from:at+end], end
	}
	outs, ok := e.decodeBlocks(list, left)
	if !ok {
		return nil, 0
	}
	for i, out := range outs {
		parts = append(parts, decodedPart{end: at + ends[i], decoded: true, out: out})
	}
	last := &parts[len(parts)-1]
	last.begin, last.last = at, whole || len(parts) > 1
	return parts, at + ends[len(ends)-1]
}

// decodeBlocks decodes blocks that follow each other, and returns what came of each. ok is false if they
// cannot be decoded. The end may be missing.
func (e *encoding) decodeBlocks(list [][]byte, left *int64) (outs [][]byte, ok bool) {
	outs = make([][]byte, len(list))
	out := sink{left: left}
	now, from := 0, 0
	p := &pieces{list: list}
	p.next = func() {
		outs[now], from = out.b[from:len(out.b):len(out.b)], len(out.b)
		now++
	}
	r, err := e.reader(p)
	if err != nil {
		return nil, false
	}
	if z, ok := r.(*zstd.Decoder); ok {
		defer z.Close()
	}
	if _, err := io.Copy(&out, r); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, false
	}
	if p.at < len(list)-1 || p.at < len(list) && p.off < len(list[p.at]) {
		return nil, false // something else follows
	}
	if now < len(list) {
		p.next()
	}
	return outs, true
}

// divide returns what each move of a side has of the parts. What was decoded of a block is of the move with
// its last byte: a reader has it from then on. With apart, what follows is another content: several messages
// may have come at once.
func divide(all []byte, ends []int, parts []decodedPart, apart bool) [][][]byte {
	outs := make([][][]byte, len(ends))
	move, at := 0, 0
	done := false // the last content of the move is the end of a block
	add := func(b []byte) {
		list := outs[move]
		if len(list) == 0 || apart && done {
			outs[move] = append(list, nil)
		}
		last := len(outs[move]) - 1
		outs[move][last] = append(outs[move][last], b...)
		done = false
	}
	for _, p := range parts {
		for at < p.end {
			for ends[move] <= at {
				move, done = move+1, false
			}
			end := min(p.end, ends[move])
			switch {
			case !p.decoded:
				add(all[at:end])
			case end == p.end && len(p.out) > 0:
				add(p.out)
				done = true
			}
			at = end
		}
	}
	return outs
}

// givenBy is a content that a process took in or gave out: a class, or the hash of a frame.
type givenBy struct {
	process uint32
	class   uint64
}

// decodedOf leaves out objects whose content a process passes on, or has, as it is, in an object that is
// not decoded: only so both can be compared. Of failed, something cannot be decoded.
func (f *Flow) decodedOf(list, failed []*decoding) []*decoding {
	if len(list) == 0 {
		return nil
	}
	left, concerned := map[uint32]bool{}, map[uint32]bool{}
	for _, d := range list {
		left[d.object] = true
		for p := range f.processesAt(d.object) {
			concerned[p] = true
		}
	}
	raw, frames := map[givenBy]bool{}, map[givenBy]bool{}
	for k := range f.moves {
		m := &f.moves[k]
		if m.at == reset || m.class == 0 || m.bytes() < smallest || left[m.object] {
			continue
		}
		if p := f.processOf(uint32(k)); concerned[p] {
			raw[givenBy{p, uint64(m.class)}] = true
		}
	}
	keep := func(d *decoding) {
		for p := range f.processesAt(d.object) {
			for _, h := range d.frames {
				frames[givenBy{p, h}] = true
			}
		}
	}
	for _, d := range failed {
		keep(d)
	}
	for again := true; again; {
		again = false
		kept := list[:0]
		for _, d := range list {
			if !f.passesAsIs(d, raw, frames) {
				kept = append(kept, d)
				continue
			}
			for _, k := range f.byObject.of(d.object) {
				raw[givenBy{f.processOf(k), uint64(f.moves[k].class)}] = true
			}
			keep(d)
			again = true
		}
		list = kept
	}
	return list
}

// processesAt returns which processes use an object.
func (f *Flow) processesAt(object uint32) map[uint32]bool {
	set := map[uint32]bool{}
	for _, k := range f.byObject.of(object) {
		set[f.processOf(k)] = true
	}
	return set
}

// passesAsIs reports whether of what is moved at an object more than a little is among some contents, or
// frames.
func (f *Flow) passesAsIs(d *decoding, contents, frames map[givenBy]bool) bool {
	has, of := 0, 0
	for _, k := range f.byObject.of(d.object) {
		if m := &f.moves[k]; m.bytes() >= smallest && m.at != reset {
			if of++; contents[givenBy{f.processOf(k), uint64(m.class)}] {
				has++
			}
		}
	}
	if rareMissing*has > of {
		return true
	}
	for p := range f.processesAt(d.object) {
		has = 0
		for _, h := range d.frames {
			if frames[givenBy{p, h}] {
				has++
			}
		}
		if rareMissing*has > len(d.frames) {
			return true
		}
	}
	return false
}

// apply puts decoded content in the place of that of the moves of objects: positions are then those in the
// decoded content. A move that has several contents becomes several moves.
func (f *Flow) apply(list []*decoding) error {
	more := map[uint32][]move{}
	for _, d := range list {
		f.placeEnds(d)
		for i, side := range d.sides {
			at := int64(0)
			for n, k := range side {
				m := &f.moves[k]
				first, write := *m, m.n&writes
				m.at, m.class, m.n = at, 0, write
				for p, out := range d.outs[i][n] {
					class, err := f.contents.inlined(out)
					if err != nil {
						return err
					}
					if p > 0 {
						more[k] = append(more[k], first)
						m = &more[k][p-1]
					}
					m.at, m.class, m.n = at, class, write|uint32(len(out))
					at += int64(len(out))
				}
			}
		}
		f.objects[d.object].Decoded = true
		d.outs = nil
	}
	if len(more) > 0 {
		f.insert(more)
	}
	return nil
}

// placeEnds tells where in the decoded content of a file it was found to end.
func (f *Flow) placeEnds(d *decoding) {
	if f.objects[d.object].Kind != File {
		return
	}
	for i := range f.ends {
		x := &f.ends[i]
		if x.object != d.object {
			continue
		}
		raw, decoded := int64(0), int64(0)
		for n, k := range d.sides[0] {
			if raw += f.moves[k].bytes(); raw > x.at {
				break
			}
			for _, out := range d.outs[0][n] {
				decoded += int64(len(out))
			}
		}
		x.at = decoded
	}
}

// insert puts moves behind others, by number.
func (f *Flow) insert(more map[uint32][]move) {
	n := len(f.moves)
	for _, list := range more {
		n += len(list)
	}
	moves := make([]move, 0, n)
	place := make([]uint32, len(f.moves)+1)
	for k := range f.moves {
		place[k] = uint32(len(moves))
		moves = append(append(moves, f.moves[k]), more[uint32(k)]...)
		for i := range more[uint32(k)] {
			v := &more[uint32(k)][i]
			side := 1
			if v.write() {
				side = 0
			}
			f.objects[v.object].ends[side]++
		}
	}
	place[len(f.moves)] = uint32(len(moves))
	f.moves = moves
	f.stats.Moves += n - len(place) + 1
	packets := make(map[uint32][]uint32, len(f.packets))
	for k, list := range f.packets {
		for i := range list {
			list[i] = place[list[i]]
		}
		packets[place[k]] = list
	}
	f.packets = packets
	for i := range f.ends {
		f.ends[i].before = int(place[f.ends[i].before])
	}
	f.groupByObject()
}

// counted is a reader of bytes that tells how many were read, and no more than are needed.
type counted struct {
	b []byte
	n int
}

func (c *counted) Read(b []byte) (int, error) {
	if c.n == len(c.b) {
		return 0, io.EOF
	}
	n := copy(b, c.b[c.n:])
	c.n += n
	return n, nil
}

func (c *counted) ReadByte() (byte, error) {
	if c.n == len(c.b) {
		return 0, io.EOF
	}
	c.n++
	return c.b[c.n-1], nil
}

// syncMark ends what was flushed (RFC 1951, 3.2.4: a stored block of no bytes).
var syncMark = []byte{0, 0, 0xff, 0xff}

// gzipBlocks is the unit of gzip. Blocks end where the stream was flushed: others do not end at a byte.
func gzipBlocks(b []byte) (ends []int, whole bool) {
	c := &counted{b: b}
	z, err := gzip.NewReader(c)
	if err != nil {
		return nil, false
	}
	z.Multistream(false)
	_, err = io.Copy(io.Discard, io.LimitReader(z, mostDecoded))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false
	}
	for at := 0; ; {
		i := bytes.Index(b[at:c.n], syncMark)
		if at += i + len(syncMark); i < 0 || at >= c.n {
			return append(ends, c.n), err == nil
		}
		ends = append(ends, at)
	}
}

// zstdBlocks is the unit of zstd (RFC 8878, 3.1.1).
func zstdBlocks(b []byte) (ends []int, whole bool) {
	if len(b) < 6 {
		return nil, false
	}
	head := b[4]
	at := 5 + [4]int{0, 1, 2, 4}[head&3] + [4]int{0, 2, 4, 8}[head>>6]
	if head&0x20 == 0 {
		at++ // window
	} else if head>>6 == 0 {
		at++ // a size of one byte
	}
	for at+3 <= len(b) {
		x := int(b[at]) | int(b[at+1])<<8 | int(b[at+2])<<16
		n := x >> 3
		if x>>1&3 == 1 { // one byte, repeated
			n = 1
		}
		at += 3 + n
		last := x&1 != 0
		if last && head&4 != 0 {
			at += 4 // checksum
		}
		if at > len(b) || at == len(b) && !last {
			break
		}
		if ends = append(ends, at); last {
			return ends, true
		}
	}
	return append(ends, len(b)), false
}

// lz4Blocks is the unit of lz4 (LZ4 frame format, 1.6).
func lz4Blocks(b []byte) (ends []int, whole bool) {
	if len(b) < 7 {
		return nil, false
	}
	flags := b[4]
	at := 7
	if flags&8 != 0 {
		at += 8 // size of the content
	}
	if flags&1 != 0 {
		at += 4 // dictionary
	}
	for at+4 <= len(b) {
		n := int(binary.LittleEndian.Uint32(b[at:]) & (1<<31 - 1))
		at += 4
		if n == 0 {
			if flags&4 != 0 {
				at += 4 // checksum
			}
			return append(ends, min(at, len(b))), at <= len(b)
		}
		if at += n; flags&16 != 0 {
			at += 4
		}
		if at >= len(b) {
			break
		}
		ends = append(ends, at)
	}
	return append(ends, len(b)), false
}

// snappyBlocks is the unit of snappy's framing format. A frame has no end of its own: it ends before what is no
// chunk of it.
func snappyBlocks(b []byte) (ends []int, whole bool) {
	at := 10
	for at+4 <= len(b) {
		kind := b[at]
		n := int(b[at+1]) | int(b[at+2])<<8 | int(b[at+3])<<16
		if kind == 0xff || kind > 1 && kind < 0x80 || kind <= 1 && !snappyChunk(b[at:], n) {
			break
		}
		if at += 4 + n; at >= len(b) {
			break
		}
		ends = append(ends, at)
	}
	if at >= len(b) || at+4 > len(b) && len(ends) == 0 {
		return append(ends, len(b)), at == len(b)
	}
	return ends, true
}

const (
	leastChunk = 4             // bytes: its checksum
	mostChunk  = 4<<20 + 8<<10 // of s2; those of snappy have 64 KiB of data
)

// snappyChunk reports whether bytes begin with a chunk of data of n bytes, as far as they go.
func snappyChunk(b []byte, n int) bool {
	if n < leastChunk || n > mostChunk {
		return false
	}
	data := b[min(4+leastChunk, len(b)):min(4+n, len(b))]
	if b[0] == 0 && len(data) > 0 {
		if size, err := s2.DecodedLen(data); err != nil || size > mostChunk || n > leastChunk+s2.MaxEncodedLen(size) {
			return false
		}
	}
	if len(b) < 4+n {
		return true
	}
	if b[0] == 0 {
		var err error
		if data, err = s2.Decode(nil, data); err != nil {
			return false
		}
	}
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return (sum>>15|sum<<17)+0xa282ead8 == binary.LittleEndian.Uint32(b[4:])
}
