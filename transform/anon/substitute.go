// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"encoding/binary"
	"io"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/trace"
)

// substitution replaces each byte by one that depends on it and on its place in its page
// of the file. So a file holds the same however its bytes were written and read, in parts
// or whole, which is what a replay verifies. Zero stays: it is what the kernel puts where
// nothing was written.
//
// It keeps content from being read, and from being searched. It does not withstand
// analysis: who knows, or guesses, what stood at a place in some pages knows it in all.
type substitution struct {
	tables [2][trace.ChunkBytes][256]byte // there and back
}

func newSubstitution(key Key) *substitution {
	s := new(substitution)
	h, err := blake3.NewKeyed(key[:])
	if err != nil {
		panic(err) // the size is a constant
	}
	random := h.Digest()
	var buf [4 * 256]byte
	for place := range s.tables[0] {
		t := &s.tables[0][place]
		for i := range t {
			t[i] = byte(i)
		}
		io.ReadFull(random, buf[:]) // never fails
		for i := 255; i > 1; i-- {  // Fisher and Yates, among 1 to 255
			k := 1 + binary.LittleEndian.Uint32(buf[4*i:])%uint32(i)
			t[i], t[k] = t[k], t[i]
		}
		for i, b := range t {
			s.tables[1][place][b] = byte(i)
		}
	}
	return s
}

// crypt replaces the bytes at an offset of a file.
func (s *substitution) crypt(b []byte, off int64, back bool) {
	t := &s.tables[0]
	if back {
		t = &s.tables[1]
	}
	at := int(uint64(off) % trace.ChunkBytes)
	for i, c := range b {
		b[i] = t[at][c]
		if at++; at == trace.ChunkBytes {
			at = 0
		}
	}
}
