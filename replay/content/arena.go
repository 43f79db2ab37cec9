// SPDX-License-Identifier: Apache-2.0

package content

// keptBytes is how much memory an Arena keeps for its next use.
const keptBytes = 1 << 20

// Arena is memory for the content of a batch of steps. Slices of it stay valid until Reset.
type Arena struct {
	Bytes []byte
	Sums  []ChunkSum
	held  int64 // bytes of memory that Bytes had before
}

// Room makes room for n more bytes and returns Bytes. If Bytes is full it is replaced by an
// empty slice of twice the size, because how much will follow is not known: what was taken of
// it before stays where it is.
func (a *Arena) Room(n int64) []byte {
	if have := int64(cap(a.Bytes)); have-int64(len(a.Bytes)) < n {
		a.held += have
		a.Bytes = make([]byte, 0, max(n, min(max(4*n, 2*have), keptBytes)))
	}
	return a.Bytes
}

// Used returns how many bytes of content the arena has got so far, at least.
func (a *Arena) Used() int64 { return a.held + int64(len(a.Bytes)) }

// Held returns how many bytes of memory the arena takes.
func (a *Arena) Held() int64 {
	return a.held + int64(cap(a.Bytes)) + int64(cap(a.Sums))*ChunkSumBytes
}

// Reset makes the arena ready for its next use.
func (a *Arena) Reset() {
	a.held = 0
	if a.Bytes = a.Bytes[:0]; cap(a.Bytes) > keptBytes {
		a.Bytes = nil
	}
	if a.Sums = a.Sums[:0]; int64(cap(a.Sums))*ChunkSumBytes > keptBytes {
		a.Sums = nil
	}
}
