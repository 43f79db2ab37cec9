// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"

	"github.com/zeebo/blake3"
)

// wide encrypts byte strings of any length as one block: a change of any bit changes all
// of it, and equal strings become equal ones. From wideBytes on it is LIONESS (Anderson
// and Biham, Two Practical and Provably Secure Block Ciphers, 1996), with AES-256 in counter mode as the stream
// cipher and keyed BLAKE3 as the hash:
//
//	R ^= S1(L)   L ^= H2(R)   R ^= S3(L)   L ^= H4(R)      L: 16 bytes, R: the rest
//
// Shorter strings are for a feistel.
type wide struct {
	streams [2]cipher.Block
	hashes  [2]*blake3.Hasher
	short   *feistel
	head    [8]byte
	sum     [aes.BlockSize]byte
}

const wideBytes = 2 * aes.BlockSize

func newWide(derive func(use string) Key) *wide {
	w := &wide{short: newFeistel(derive("short"))}
	for i, use := range [...]string{"wide 1", "wide 3"} {
		key := derive(use)
		b, err := aes.NewCipher(key[:])
		if err != nil {
			panic(err) // the size is a constant
		}
		w.streams[i] = b
	}
	for i, use := range [...]string{"wide 2", "wide 4"} {
		key := derive(use)
		h, err := blake3.NewKeyed(key[:])
		if err != nil {
			panic(err) // likewise
		}
		w.hashes[i] = h
	}
	return w
}

// crypt encrypts b in place; back decrypts.
func (w *wide) crypt(b []byte, back bool) {
	if len(b) < wideBytes {
		w.short.crypt(b, octets, back)
		return
	}
	l, r := b[:aes.BlockSize], b[aes.BlockSize:]
	if back {
		w.hash(1, l, r)
		w.stream(1, l, r)
		w.hash(0, l, r)
		w.stream(0, l, r)
		return
	}
	w.stream(0, l, r)
	w.hash(0, l, r)
	w.stream(1, l, r)
	w.hash(1, l, r)
}

func (w *wide) stream(i int, l, r []byte) {
	cipher.NewCTR(w.streams[i], l).XORKeyStream(r, r)
}

func (w *wide) hash(i int, l, r []byte) {
	h := w.hashes[i]
	h.Reset()
	binary.LittleEndian.PutUint64(w.head[:], uint64(len(r)))
	h.Write(w.head[:])
	h.Write(r)
	h.Digest().Read(w.sum[:])
	for k := range l {
		l[k] ^= w.sum[k]
	}
}
