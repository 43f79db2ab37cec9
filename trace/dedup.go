// SPDX-License-Identifier: Apache-2.0

package trace

import "encoding/binary"

// dedup finds the number of a chunk by the first 128 bits of its BLAKE3 hash. It
// holds 16 bytes per chunk for the keys and, in an open-addressed table that is at
// most 3/4 full, 4 bytes per slot: at most 27 bytes per chunk, and twice the slots
// for the moment in which it grows (37 bytes).
//
// Two different chunks are taken for one if these 128 bits are equal. For n
// distinct chunks that happens by chance with a probability of about n²/2^129:
// 2^-65 for 2^32 chunks, which are 16 TiB of distinct content in one tape.
type dedup struct {
	keys  [][]dedupKey // in pages, so that growth moves nothing
	n     uint32
	slots []uint32 // number of the chunk, 0 if free; the length is a power of two
}

type dedupKey [16]byte

const (
	dedupPage    = 1 << 12 // keys
	maxDedupKeys = 1<<32 - 2
)

func newDedup() *dedup { return &dedup{slots: make([]uint32, 1<<12)} }

func (d *dedup) key(id uint32) *dedupKey { return &d.keys[(id-1)/dedupPage][(id-1)%dedupPage] }

// add returns the number of the chunk with a hash and whether it is new. Numbers
// count from 1. The caller sees to it that there are no more than maxDedupKeys.
func (d *dedup) add(hash *[32]byte) (id uint32, fresh bool) {
	k := (*dedupKey)(hash[:16])
	mask := uint64(len(d.slots) - 1)
	i := binary.LittleEndian.Uint64(k[:]) & mask
	for ; d.slots[i] != 0; i = (i + 1) & mask {
		if *d.key(d.slots[i]) == *k {
			return d.slots[i], false
		}
	}
	if d.n%dedupPage == 0 {
		d.keys = append(d.keys, make([]dedupKey, dedupPage))
	}
	d.n++
	*d.key(d.n) = *k
	d.slots[i] = d.n
	id = d.n
	if uint64(d.n)*4 > uint64(len(d.slots))*3 {
		d.grow()
	}
	return id, true
}

func (d *dedup) grow() {
	slots := make([]uint32, 2*len(d.slots))
	mask := uint64(len(slots) - 1)
	for id := uint32(1); id <= d.n; id++ {
		i := binary.LittleEndian.Uint64(d.key(id)[:]) & mask
		for slots[i] != 0 {
			i = (i + 1) & mask
		}
		slots[i] = id
	}
	d.slots = slots
}
