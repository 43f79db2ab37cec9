// SPDX-License-Identifier: Apache-2.0

package content

import (
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// A read is compared with what the tape says by XXH3-128 hashes of the chunks that it is
// made of. Most of what a replay reads it has written itself, and the content of those writes
// was taken out of the tape: then the hashes are known, and the bytes need not be
// decompressed again, kept until they are compared, or fetched from memory that is in no
// cache any longer. A tape's own hashes of its chunks are BLAKE3, which takes longer for a
// page than reading it does.
//
// The author of a tape can make two chunks with one XXH3-128 hash, and so hide a difference in
// a read from a replay of that tape; the files in the end are compared by other means.

// HashCache has the hashes of chunks that were taken out of a tape. It is used by one
// goroutine.
type HashCache struct {
	pages map[uint64]*hashPage // by chunk / chunksPerPage
	order []uint64             // of the pages, the oldest at next
	next  int
	space []byte
}

// hashPage has the hashes of a run of chunks. One with a length of 0 is not known.
type hashPage [chunksPerPage]struct {
	sum xxh3.Uint128
	len uint32
}

const (
	chunksPerPage = 512
	// maxHashPages bounds the memory: 48 MiB, for two million chunks.
	maxHashPages = 4096
)

// NewHashCache returns an empty cache.
func NewHashCache() *HashCache { return &HashCache{pages: map[uint64]*hashPage{}} }

// sum returns the hash of the bytes that a reference names.
func (k *HashCache) sum(r event.Ref) (xxh3.Uint128, bool) {
	p := k.pages[r.Chunk/chunksPerPage]
	if p == nil || r.Off != 0 || r.Len == 0 {
		return xxh3.Uint128{}, false
	}
	c := &p[r.Chunk%chunksPerPage]
	return c.sum, c.len == r.Len
}

// add remembers the hash of the bytes that a reference names, if they begin a chunk.
func (k *HashCache) add(r event.Ref, sum xxh3.Uint128) {
	if r.Off != 0 {
		return
	}
	n := r.Chunk / chunksPerPage
	p := k.pages[n]
	if p == nil {
		p = new(hashPage)
		if len(k.order) < maxHashPages {
			k.order = append(k.order, n)
		} else {
			delete(k.pages, k.order[k.next])
			k.order[k.next] = n
			k.next = (k.next + 1) % maxHashPages
		}
		k.pages[n] = p
	}
	c := &p[r.Chunk%chunksPerPage]
	c.sum, c.len = sum, r.Len
}

// Observe remembers the hashes of a buffer's chunks, whose bytes are data.
func (k *HashCache) Observe(b *event.Buf, data []byte) {
	data = data[min(len(b.Inline), len(data)):]
	for _, r := range b.Refs {
		if uint64(r.Len) > uint64(len(data)) {
			return
		}
		if r.Chunk != 0 {
			if _, ok := k.sum(r); !ok {
				k.add(r, xxh3.Hash128(data[:r.Len]))
			}
		}
		data = data[r.Len:]
	}
}

// ChunkSum is the hash of a part of what a read should give.
type ChunkSum struct {
	Sum xxh3.Uint128
	Ref event.Ref
}

// Sums appends the sums of what a buffer is made of. It reports false if that is not to be known in
// this way: bytes of it are in the event itself, or are not in the tape.
func (k *HashCache) Sums(t *trace.Tape, b *event.Buf, dst []ChunkSum) ([]ChunkSum, bool) {
	if len(b.Inline) > 0 || len(b.Refs) == 0 {
		return dst, false
	}
	left := b.Len
	for _, r := range b.Refs {
		if left -= int64(r.Len); r.Chunk == 0 {
			return dst, false
		}
	}
	if left != 0 {
		return dst, false
	}
	out := dst
	for _, r := range b.Refs {
		sum, ok := k.sum(r)
		if !ok {
			one := event.Buf{Len: int64(r.Len), Refs: []event.Ref{r}}
			data, err := t.Content(&one, k.space[:0])
			if err != nil {
				return dst, false
			}
			k.space = data
			sum = xxh3.Hash128(data)
			k.add(r, sum)
		}
		out = append(out, ChunkSum{sum, r})
	}
	return out, true
}

// ChunkSumBytes is the memory that a ChunkSum takes.
const ChunkSumBytes = int64(unsafe.Sizeof(ChunkSum{}))

// Same reports whether bytes have these sums.
func Same(parts []ChunkSum, got []byte) bool {
	for i := range parts {
		n := uint64(parts[i].Ref.Len)
		if n > uint64(len(got)) || xxh3.Hash128(got[:n]) != parts[i].Sum {
			return false
		}
		got = got[n:]
	}
	return len(got) == 0
}
