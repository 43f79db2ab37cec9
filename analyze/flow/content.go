// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/similar"
	"github.com/iotape/iotape/trace"
)

// Class is the number of a content: equal content has one number. 0 is content that is
// not in the tapes.
type Class uint32

// contents holds what moved, each content once: not its bytes, but where they are.
type contents struct {
	tapes   []*trace.Tape
	hashes  []*trace.HashReader
	signs   [][]bool   // of each tape and host: hashes are signatures
	chunks  [][]uint32 // of each tape: the number among all tapes of its chunks, 0 if it was not asked for
	byHash  map[[16]byte]uint32
	dict    map[[16]byte]uint32 // classes by what they are made of
	classes []class
	refs    []event.Ref
	inline  []byte
	digests []event.Digest
	sketch  map[uint32][]byte   // of classes that have signatures: Buf.Sketch
	samples [][sampleBytes]byte // of classes: bytes from places that are the same for equal lengths
	empty   []bool              // of classes: hardly more than runs of one byte, such as zeros
	same    []uint32            // of classes: the class that has the same bytes, cut differently
	key     []byte
	last    uint32 // for bytes: the class whose bytes are in hand
	buf     []byte
}

// class says where the bytes of a content are.
type class struct {
	len   int64
	first uint32 // in refs, inline or digests
	n     uint32 // how many
	tape  uint16
	kind  uint8
}

const (
	kindNone = iota
	kindInline
	kindRefs
	kindHash // there are no bytes, but hashes
	kindSignature
	kindCAT // ten numbers, of an imported log
)

// hashed reports whether there are no bytes.
func (c *class) hashed() bool { return c.kind >= kindHash }

func (c *contents) init(tapes []*trace.Tape) {
	c.tapes, c.byHash, c.dict, c.sketch = tapes, map[[16]byte]uint32{}, map[[16]byte]uint32{}, map[uint32][]byte{}
	c.classes = make([]class, 1)
	for _, t := range tapes {
		c.hashes = append(c.hashes, t.NewHashReader())
		c.chunks = append(c.chunks, nil)
		var signs []bool
		for _, h := range t.Manifest().Hosts {
			signs = append(signs, strings.Contains(h.Content, "signature"))
		}
		c.signs = append(c.signs, signs)
	}
}

// chunksDone forgets what only class needs.
func (c *contents) chunksDone() { c.hashes, c.chunks, c.byHash, c.dict = nil, nil, nil, nil }

// chunk returns the number of a tape's chunk among those of all tapes.
func (c *contents) chunk(tape int, id uint64) (uint32, error) {
	if len(c.tapes) == 1 {
		return uint32(id), nil
	}
	known := c.chunks[tape]
	if id < uint64(len(known)) && known[id] != 0 {
		return known[id], nil
	}
	if id > c.tapes[tape].Manifest().Content.Chunks {
		return 0, fmt.Errorf("chunk %d: %w", id, trace.ErrCorrupt)
	}
	hash, err := c.hashes[tape].Hash(id)
	if err != nil {
		return 0, err
	}
	for uint64(len(known)) <= id {
		known = append(known, 0)
	}
	short := [16]byte(hash[:16])
	n, ok := c.byHash[short]
	if !ok {
		n = uint32(len(c.byHash)) + 1
		c.byHash[short] = n
	}
	known[id], c.chunks[tape] = n, known
	return n, nil
}

// class returns the class of a buffer of a host of a tape; 0 if the tape does not have
// all of its content.
func (c *contents) class(tape int, host uint32, b *event.Buf) (uint32, error) {
	k := class{len: b.Len, tape: uint16(tape)}
	key := c.key[:0]
	switch {
	case len(b.Hashes) > 0:
		k.kind = kindHash
		if int(host) < len(c.signs[tape]) && c.signs[tape][host] {
			k.kind = kindSignature
		}
		if int64(len(b.Hashes)) != (b.Len-1)/event.HashBytes+1 { // as no recording is
			return 0, nil
		}
		key = append(key, k.kind)
		for i := range b.Hashes {
			if b.Hashes[i].Missing() {
				return 0, nil
			}
			key = append(key, b.Hashes[i][:]...)
		}
	case b.Omitted || b.Missing > 0:
		return 0, nil
	case len(b.Refs) == 0:
		if int64(len(b.Inline)) != b.Len {
			return 0, nil
		}
		k.kind = kindInline
		key = append(append(key, k.kind), b.Inline...)
	default:
		k.kind = kindRefs
		key = append(key, k.kind)
		rest := b.Len
		for _, r := range b.Refs {
			if rest -= int64(r.Len); r.Chunk == 0 || rest < 0 {
				return 0, nil
			}
			n, err := c.chunk(tape, r.Chunk)
			if err != nil {
				return 0, err
			}
			key = binary.LittleEndian.AppendUint32(key, n)
			key = binary.LittleEndian.AppendUint32(key, r.Off)
			key = binary.LittleEndian.AppendUint32(key, r.Len)
		}
		if rest != 0 {
			return 0, nil
		}
	}
	c.key = key
	switch k.kind {
	case kindInline:
		k.first, k.n = uint32(len(c.inline)), uint32(len(b.Inline))
	case kindRefs:
		k.first, k.n = uint32(len(c.refs)), uint32(len(b.Refs))
	default:
		k.first, k.n = uint32(len(c.digests)), uint32(len(b.Hashes))
	}
	return c.add(k, key, func() {
		if len(b.Sketch) > 0 {
			c.sketch[uint32(len(c.classes))] = slices.Clone(b.Sketch)
		}
		c.inline, c.refs, c.digests = append(c.inline, b.Inline...), append(c.refs, b.Refs...), append(c.digests,
			b.Hashes...)
	})
}

// add returns the class that is made of key. If it is new, keep has to put what it is
// made of where it says.
func (c *contents) add(k class, key []byte, keep func()) (uint32, error) {
	c.key = binary.LittleEndian.AppendUint64(key, uint64(k.len))
	sum := blake3.Sum256(c.key)
	short := [16]byte(sum[:16])
	if id, ok := c.dict[short]; ok {
		return id, nil
	}
	id := uint32(len(c.classes))
	if int64(k.first)+int64(k.n) > 1<<32-1 || id == 1<<32-1 {
		return 0, errors.New("more content than can be numbered")
	}
	keep()
	c.classes = append(c.classes, k)
	c.dict[short] = id
	return id, nil
}

// bytes returns the bytes of a class, nil if there are none. They are the caller's.
func (c *contents) bytes(id uint32) ([]byte, error) { return c.appendBytes(nil, id) }

// borrow returns the bytes of a class, valid until the next call.
func (c *contents) borrow(id uint32) ([]byte, error) {
	if c.last == id && id != 0 {
		return c.buf, nil
	}
	b, err := c.appendBytes(c.buf[:0], id)
	c.buf, c.last = b, id
	if err != nil {
		c.last = 0
	}
	return b, err
}

func (c *contents) appendBytes(dst []byte, id uint32) ([]byte, error) {
	k := &c.classes[id]
	switch k.kind {
	case kindInline:
		dst = append(dst, c.inline[k.first:k.first+k.n]...)
	case kindRefs:
		b := event.Buf{Len: k.len, Refs: c.refs[k.first : k.first+k.n]}
		out, err := c.tapes[k.tape].Content(&b, dst)
		if err != nil {
			return dst, fmt.Errorf("%s: %w", c.tapes[k.tape].Name(), err)
		}
		return out, nil
	}
	return dst, nil
}

// sampleBytes is how many bytes of a content are kept to see what it cannot be like.
const sampleBytes = 16

// sample takes bytes from all over a content.
func sample(b []byte) (s [sampleBytes]byte) {
	for i := range s {
		if len(b) > 0 {
			s[i] = b[(2*i+1)*len(b)/(2*sampleBytes)]
		}
	}
	return s
}

// mayBeLike reports whether two contents of one length can be the same but for a few
// bytes, without looking at all of them.
func (c *contents) mayBeLike(a, b uint32) bool {
	same := 0
	for i, x := range c.samples[a] {
		if x == c.samples[b][i] {
			same++
		}
	}
	return same >= sampleBytes/2
}

// digest returns the hashes or signatures of a class, one for each event.HashBytes.
func (c *contents) digest(id uint32) []event.Digest {
	k := &c.classes[id]
	if !k.hashed() {
		return nil
	}
	return c.digests[k.first : k.first+k.n]
}

// signature is what is known of the bytes of a part of a content.
type signature struct {
	digest similar.Digest
	sketch []byte
}

// signed returns the signatures of a class that has these.
func (c *contents) signed(id uint32) (list []signature) {
	left, sketches := c.classes[id].len, c.sketch[id]
	for _, d := range c.digest(id) {
		n := min(similar.SketchBytes(int(min(left, event.HashBytes))), len(sketches))
		list = append(list, signature{similar.Digest(d), sketches[:n]})
		left, sketches = left-event.HashBytes, sketches[n:]
	}
	return list
}

// sign makes the signatures of bytes.
func sign(d *similar.Digester, content []byte) (list []signature) {
	for part := range slices.Chunk(content, event.HashBytes) {
		digest, sketch := d.Sign(nil, part)
		list = append(list, signature{digest, sketch})
	}
	return list
}
