// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/zeebo/blake3"
)

// Digest is a signature that is as small as a hash: what a recording keeps in place of
// content. The first 8 bytes are of the BLAKE3-256 of the content, so equal digests are
// of equal content; the others are the lowest bits of 192 numbers of MinHash (b-bit
// minwise hashing; Li and König, WWW 2010). Of unlike content half the bits agree by
// chance; the standard error of an estimate is at most 1/√192: 0.072, and 0.043 at 0.8.
type Digest [32]byte

// DigestHashes is how many bits a digest has for resemblance.
const DigestHashes = 192

// Digester computes digests and sketches. It is not safe for concurrent use.
type Digester struct {
	least  [sketchBuckets]uint32      // hashes, turned round: the greatest is the least
	filled [sketchBuckets / 64]uint64 // a bit for each bucket that has one
	sig    [DigestHashes]uint64
}

// Sum returns the digest of content.
func (d *Digester) Sum(content []byte) (out Digest) {
	hash := blake3.Sum256(content)
	copy(out[:8], hash[:])
	if len(content) == 0 {
		return out
	}
	d.scan(content)
	// The signature of a Signer with DigestHashes numbers, and the defaults.
	for i := range d.sig {
		d.sig[i] = math.MaxUint64
	}
	for i := range d.buckets {
		const many = sketchBuckets / DigestHashes
		d.sig[i/many] = min(d.sig[i/many], uint64(^d.least[i]))
	}
	densify(d.sig[:], digestSeed)
	for i, v := range d.sig {
		// Mixed again: the least of many values has zeros above, and bits that are as good
		// as random below, but borrowed numbers would agree bit by bit.
		out[8+i/8] |= byte(mix(v+uint64(i)*golden)&1) << (i % 8)
	}
	return out
}

// digestSeed is that of a Signer with the defaults.
var digestSeed = mix(golden)

// scan finds the least hash of each bucket. A bucket of a Signer is so many neighbours of
// these as there are more of them.
func (d *Digester) scan(content []byte) {
	clear(d.least[:])
	clear(d.filled[:])
	const k = MaxShingle // the default
	var v uint64
	if len(content) < k {
		for _, c := range content {
			v = v<<8 | uint64(c)
		}
		d.put(v)
		return
	}
	for i, c := range content {
		if v = v<<8 | uint64(c); i >= k-1 {
			d.put(v)
		}
	}
}

// put takes a shingle.
func (d *Digester) put(v uint64) {
	h := mix(v ^ digestSeed)
	i := h >> 32 * sketchBuckets >> 32
	d.filled[i/64] |= 1 << (i % 64)
	d.least[i] = max(d.least[i], ^uint32(h))
}

// buckets yields those that have a hash.
func (d *Digester) buckets(yield func(int) bool) {
	for at, word := range d.filled {
		for ; word != 0; word &= word - 1 {
			if !yield(64*at + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

// Estimate returns an estimate of the Jaccard index of two contents, 0 to 1; 1 only if
// they are equal.
func (d *Digest) Estimate(o *Digest) float64 {
	if *d == *o {
		return 1
	}
	same := 0
	for i := 8; i < len(d); i += 8 {
		same += 64 - bits.OnesCount64(binary.LittleEndian.Uint64(d[i:])^binary.LittleEndian.Uint64(o[i:]))
	}
	return min(max(2*float64(same)/DigestHashes-1, 0), 0.999)
}
