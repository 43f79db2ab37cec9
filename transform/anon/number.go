// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"math/bits"
)

// permutation permutes numbers within ranges.
type permutation struct {
	block   cipher.Block
	in, out [aes.BlockSize]byte
}

func newPermutation(key Key) *permutation {
	b, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the size is a constant
	}
	return &permutation{block: b}
}

const numberRounds = 24

// crypt permutes the numbers from low to high, both included: a Feistel network over the
// bits, cycle-walked into the range.
func (p *permutation) crypt(v, low, high uint64, back bool) uint64 {
	if v < low || v > high || low == high {
		return v
	}
	half := uint(max(bits.Len64(high-low)+1, 2) / 2)
	mask := uint64(1)<<half - 1
	x := v - low
	for {
		l, r := x>>half, x&mask
		for i := range numberRounds {
			if back {
				l, r = r^p.round(l, low, high, numberRounds-1-i)&mask, l
			} else {
				l, r = r, l^p.round(r, low, high, i)&mask
			}
		}
		if x = l<<half | r; x <= high-low {
			return x + low
		}
	}
}

// round is a pseudorandom function of half a number, of which there are at most 32 bits.
// The range stands in it, so that ranges have permutations of their own.
func (p *permutation) round(half, low, high uint64, i int) uint64 {
	p.in = [16]byte{byte(i), byte(bits.Len64(high))}
	binary.LittleEndian.PutUint32(p.in[4:], uint32(half))
	binary.LittleEndian.PutUint64(p.in[8:], low)
	p.block.Encrypt(p.out[:], p.in[:])
	return binary.LittleEndian.Uint64(p.out[:])
}

// powers are those of ten.
var powers = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// decimal permutes a number among those of as many decimal digits, up to a largest one:
// where it stands in a text it keeps its length. Numbers that fixed reports stay, and no
// other becomes one of them.
func (p *permutation) decimal(v, largest uint64, back bool, fixed func(v uint64) bool) uint64 {
	if v == 0 || v > largest || fixed(v) {
		return v
	}
	low, high := uint64(1), largest
	for i := 1; i < len(powers); i++ {
		if powers[i] > v {
			high = min(powers[i]-1, largest)
			break
		}
		low = powers[i]
	}
	for {
		if v = p.crypt(v, low, high, back); !fixed(v) {
			return v
		}
	}
}
