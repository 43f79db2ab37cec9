// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/iotape/iotape/event"
)

// packCacheBytes bounds the decompressed packs that a Tape keeps.
const packCacheBytes = 64 << 20

// MaxContentBytes limits what Content returns. The kernel moves no more than
// 0x7ffff000 bytes in one call (MAX_RW_COUNT).
const MaxContentBytes = 1 << 31

// MissingError says that bytes of a buffer are not in the tape.
type MissingError struct {
	Pos     int64 // first missing byte, counted from the start of the buffer
	Len     int64 // missing bytes from there on
	Omitted bool  // the recording's policy was not to keep them
}

func (e *MissingError) Error() string {
	why := "could not be recorded"
	if e.Omitted {
		why = "were not wanted by the recording"
	}
	return fmt.Sprintf("%d bytes at %d of the buffer %s", e.Len, e.Pos, why)
}

// Chunk returns the bytes of a chunk. The caller must not change them.
func (t *Tape) Chunk(id uint64) ([]byte, error) {
	p, k, err := t.packOf(id)
	if err != nil {
		return nil, err
	}
	defer t.packs.leave(p, true)
	return p.chunk(k), nil
}

// ChunkHash returns the BLAKE3-256 of a chunk, as stored: Check verifies it.
func (t *Tape) ChunkHash(id uint64) (hash [32]byte, err error) {
	p, k, err := t.packOf(id)
	if err != nil {
		return hash, err
	}
	defer t.packs.leave(p, false)
	copy(hash[:], p.table[k*packEntryBytes:])
	return hash, nil
}

// packOf returns the pack that has a chunk, and the chunk's number there. Who gets it
// has to leave it.
func (t *Tape) packOf(id uint64) (p *pack, k int, err error) {
	i, ok := t.content.find(id)
	if !ok {
		err := fmt.Errorf("chunk %d of %d: %w", id, t.content.end-1, ErrCorrupt)
		if t.content.cut != nil {
			err = fmt.Errorf("chunk %d is behind the damage: %w", id, t.content.cut)
		}
		return nil, 0, err
	}
	p = t.packs.enter(i)
	p.once.Do(func() { t.packs.loaded(p, t.loadPack(i, p)) })
	if p.err != nil {
		t.packs.leave(p, false)
		return nil, 0, p.err
	}
	return p, int(id - t.content.blocks[i].first), nil
}

// pack is a decompressed pack.
type pack struct {
	once  sync.Once
	err   error
	table []byte   // packEntryBytes each
	ends  []uint32 // chunk k is plain[ends[k]:ends[k+1]]
	plain []byte
	bytes int64 // in the cache's account
	elem  *list.Element
	index int
	users int  // who entered and did not leave
	lent  bool // somebody has parts of plain for as long as he likes
}

// chunk returns the bytes of chunk k.
func (p *pack) chunk(k int) []byte { return p.plain[p.ends[k]:p.ends[k+1]:p.ends[k+1]] }

var rawBlocks = sync.Pool{New: func() any { return new(rawBlock) }}

func (t *Tape) loadPack(i int, p *pack) error {
	rb := rawBlocks.Get().(*rawBlock)
	defer rawBlocks.Put(rb)
	if err := t.content.read(i, rb); err != nil {
		return err
	}
	rb.space = t.packs.spare() // the pack keeps it
	if err := t.content.expand(rb, t.decoder); err != nil {
		return err
	}
	if rb.header.codec == codecPlain {
		rb.plain = append(rb.space[:0], rb.plain...)
	}
	rb.space, p.plain, p.table = nil, rb.plain, slices.Clone(rb.table)
	var err error
	if p.ends, err = packEnds(nil, &rb.header, p.table); err != nil {
		return t.content.at(&t.content.blocks[i], err)
	}
	return nil
}

// packEnds adds up the lengths in a pack's table.
func packEnds(ends []uint32, h *blockHeader, table []byte) ([]uint32, error) {
	if uint64(len(table)) != uint64(h.items)*packEntryBytes {
		return nil, fmt.Errorf("pack of %d chunks with a table of %d bytes: %w", h.items, len(table), ErrCorrupt)
	}
	ends, at := append(slices.Grow(ends[:0], int(h.items)+1), 0), uint32(0)
	for k := range int(h.items) {
		n := binary.LittleEndian.Uint32(table[k*packEntryBytes+32:])
		if n == 0 || n > MaxChunkBytes || n > h.plain-at {
			return nil, fmt.Errorf("chunk %d of %d bytes: %w", h.first+uint64(k), n, ErrCorrupt)
		}
		at += n
		ends = append(ends, at)
	}
	if at != h.plain {
		return nil, fmt.Errorf("pack of %d bytes, its chunks have %d: %w", h.plain, at, ErrCorrupt)
	}
	return ends, nil
}

// packCache keeps the packs that were used last. The memory of those that fall out is used
// again, unless somebody was lent a part of it: a tape's content passes through it, which is
// much more than what is kept.
type packCache struct {
	mu    sync.Mutex
	limit int64
	used  int64 // bytes
	packs map[int]*pack
	order list.List // of *pack, the last used in front
	free  [][]byte
}

// maxFreePacks is how many packs' memory waits to be used again.
const maxFreePacks = 4

func (c *packCache) init(limit int64) { c.limit, c.packs = limit, make(map[int]*pack) }

// enter returns the pack with an index, which may yet have to be loaded, and keeps its
// memory as it is until its user leaves.
func (c *packCache) enter(i int) *pack {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.packs[i]
	if p != nil {
		c.order.MoveToFront(p.elem)
	} else {
		p = &pack{index: i}
		p.elem = c.order.PushFront(p)
		c.packs[i] = p
	}
	p.users++
	return p
}

// leave ends what enter began. lent says that the user keeps a part of the pack.
func (c *packCache) leave(p *pack, lent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.users--
	p.lent = p.lent || lent
	c.reuse(p)
}

// reuse keeps the memory of a pack that nobody can find or use any more.
func (c *packCache) reuse(p *pack) {
	if p.users > 0 || p.lent || c.packs[p.index] == p || cap(p.plain) == 0 || len(c.free) == maxFreePacks {
		return
	}
	c.free = append(c.free, p.plain)
	p.plain = nil
}

// spare returns memory for a pack, which may be nil.
func (c *packCache) spare() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.free)
	if n == 0 {
		return nil
	}
	b := c.free[n-1]
	c.free[n-1], c.free = nil, c.free[:n-1]
	return b[:0]
}

// loaded accounts for a pack and makes room.
func (c *packCache) loaded(p *pack, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.err = err
	if c.packs[p.index] != p { // it fell out meanwhile
		return
	}
	p.bytes = int64(len(p.plain) + len(p.table) + 4*len(p.ends))
	c.used += p.bytes
	for c.used > c.limit && c.order.Len() > 1 {
		old := c.order.Back().Value.(*pack)
		if old == p {
			break
		}
		c.order.Remove(old.elem)
		delete(c.packs, old.index)
		c.used -= old.bytes
		c.reuse(old)
	}
}

// Content appends the whole bytes of a buffer to dst. If some are not in the tape,
// it returns dst unchanged and a *MissingError about the first of them.
func (t *Tape) Content(b *event.Buf, dst []byte) ([]byte, error) {
	out, missing, first, err := t.appendContent(b, dst, false)
	if err != nil {
		return dst, err
	}
	if missing > 0 {
		return dst, first
	}
	return out, nil
}

// ContentZero is like Content, but with zeros where bytes are missing, and returns
// how many those are.
func (t *Tape) ContentZero(b *event.Buf, dst []byte) (data []byte, missing int64, err error) {
	out, missing, _, err := t.appendContent(b, dst, true)
	if err != nil {
		return dst, 0, err
	}
	return out, missing, nil
}

// Present returns a buffer up to the last byte that a tape has. What is behind it may be as
// long as a call says, and take as much memory if zeros stand for it (ContentZero).
func Present(b *event.Buf) *event.Buf {
	p := *b
	for n := len(p.Refs); n > 0 && p.Refs[n-1].Chunk == 0; n-- {
		p.Refs = p.Refs[:n-1]
	}
	p.Len = int64(len(p.Inline))
	for _, r := range p.Refs {
		p.Len += int64(r.Len)
	}
	return &p
}

// ContentRange appends at most n bytes of a buffer to dst, from its byte off on, with
// zeros for those that are missing or damaged, and returns how many these are. It stops at
// the end of what the tape has of the buffer. Only what is asked for is read.
func (t *Tape) ContentRange(b *event.Buf, off int64, n int, dst []byte) (data []byte, missing int) {
	if len(b.Refs) == 0 {
		if in := b.Inline; off < int64(len(in)) {
			in = in[max(off, 0):]
			return append(dst, in[:min(len(in), n)]...), 0
		}
		return dst, 0
	}
	off = max(off, 0)
	for _, ref := range b.Refs {
		if off >= int64(ref.Len) {
			off -= int64(ref.Len)
			continue
		}
		if n <= 0 {
			break
		}
		want := int(min(int64(ref.Len)-off, int64(n)))
		n -= want
		if ref.Chunk != 0 {
			if chunk, err := t.Chunk(ref.Chunk); err == nil && int64(ref.Off)+off <= int64(len(chunk)) {
				got := chunk[int64(ref.Off)+off:]
				got = got[:min(len(got), want)]
				dst, want = append(dst, got...), want-len(got)
			}
		}
		dst, missing, off = append(dst, make([]byte, want)...), missing+want, 0
	}
	return dst, missing
}

// appendContent appends the bytes of b, with zeros for missing ones or up to the
// first missing one.
func (t *Tape) appendContent(b *event.Buf, dst []byte, zero bool) (out []byte, missing int64, first *MissingError,
	err error) {
	total, known := int64(len(b.Inline)), int64(len(b.Inline))
	for _, r := range b.Refs {
		total += int64(r.Len) // at most 2^21 references of 32 bits
		if r.Chunk != 0 {
			known += int64(r.Len)
		}
	}
	if total = max(total, b.Len); total > MaxContentBytes {
		return nil, 0, nil, fmt.Errorf("buffer of %d bytes, at most %d: %w", total, MaxContentBytes, ErrCorrupt)
	}
	pos := int64(0)
	gap := func(n int64, omitted bool) {
		if first == nil {
			first = &MissingError{Pos: pos, Len: n, Omitted: omitted}
		} else if first.Pos+first.Len == pos {
			first.Len += n
		}
		missing += n
		pos += n
		if zero {
			dst = append(dst, make([]byte, n)...)
		}
	}
	switch {
	case zero:
		dst = slices.Grow(dst, int(total))
	case b.Missing == 0 && !b.Omitted:
		dst = slices.Grow(dst, int(known)) // of what is only claimed to be there, nothing
	}
	dst = append(dst, b.Inline...)
	pos += int64(len(b.Inline))
	for _, r := range b.Refs {
		if r.Chunk == 0 {
			gap(int64(r.Len), false)
			continue
		}
		if first == nil || zero {
			if dst, err = t.appendChunk(r, dst); err != nil {
				return nil, 0, nil, err
			}
		}
		pos += int64(r.Len)
	}
	if pos < b.Len {
		gap(b.Len-pos, b.Omitted)
	}
	return dst, missing, first, nil
}

// appendChunk appends a part of a chunk.
func (t *Tape) appendChunk(r event.Ref, dst []byte) ([]byte, error) {
	p, k, err := t.packOf(r.Chunk)
	if err != nil {
		return dst, err
	}
	defer t.packs.leave(p, false)
	c := p.chunk(k)
	if uint64(r.Off)+uint64(r.Len) > uint64(len(c)) {
		return dst, fmt.Errorf("bytes %d to %d of chunk %d, which has %d: %w", r.Off, uint64(r.Off)+uint64(r.Len),
			r.Chunk, len(c), ErrCorrupt)
	}
	return append(dst, c[r.Off:r.Off+r.Len]...), nil
}
