// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A sketch of content is what Digest is too small for: how many shingles two contents
// differ in, nearly exactly where that is few. Each shingle falls into one of
// sketchBuckets buckets, of which the least hash stays: of small contents that are nearly
// all shingles, of large ones a sample. Each of these turns over one bit (odd sketches;
// Mitzenmacher, Pagh and Pham, WWW 2014). What two contents have in common turns the same
// bits, so those that differ tell how much is in one of them only.
//
//	u16 buckets that are not empty    bits, bit i%8 of byte i/8; 0 to fill the last byte
//
// There are 240 bits for content of up to 128 bytes, and twice as many for each doubling,
// at most 3840. Neighbours in a longer sketch are folded into one where it meets a
// shorter one. All of this is part of the formats.
const (
	sketchBuckets = 16 * DigestHashes
	sketchLeast   = 30      // bytes of bits
	sketchContent = 128     // bytes that these are enough for
	sketchMost    = 30 << 4 // bytes of bits
	sketchHead    = 2
	sketchSeed    = 0x6f6464 << 40
)

// SketchBytes returns how long the sketch of a content of n bytes is: about a quarter of
// it, from 32 to 482 bytes. Of no content there is none.
func SketchBytes(n int) int {
	if n <= 0 {
		return 0
	}
	size := sketchLeast
	for limit := sketchContent; limit < n && size < sketchMost; limit *= 2 {
		size *= 2
	}
	return sketchHead + size
}

// Sign returns the digest of content, and appends its sketch to dst.
func (d *Digester) Sign(dst, content []byte) (Digest, []byte) {
	out := d.Sum(content)
	at := len(dst)
	dst = append(dst, make([]byte, SketchBytes(len(content)))...)
	if len(content) == 0 {
		return out, dst
	}
	b := dst[at:]
	n, list := uint64(8*(len(b)-sketchHead)), b[sketchHead:]
	used := 0
	for i := range d.buckets {
		used++
		at, _ := bits.Mul64(mix(uint64(i)<<32|uint64(d.least[i])^sketchSeed), n)
		list[at/8] ^= 1 << (at % 8)
	}
	binary.LittleEndian.PutUint16(b, uint16(used))
	return out, dst
}

// EstimateWith is Estimate with the sketches of both contents, which tell more. Without
// one of them it is Estimate.
func (d *Digest) EstimateWith(o *Digest, sketch, other []byte) float64 {
	coarse := d.Estimate(o)
	if coarse == 1 {
		return 1
	}
	fine, variance, ok := compareSketches(sketch, other)
	if !ok {
		return coarse
	}
	// Each counts by how sure it is at what the other says is likely.
	v := max(1-fine*fine, 1e-4) / DigestHashes
	return min(max((coarse*variance+fine*v)/(variance+v), 0), 0.999)
}

// compareSketches returns an estimate of the Jaccard index and its variance.
func compareSketches(x, y []byte) (jaccard, variance float64, ok bool) {
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) <= sketchHead || len(y) > sketchHead+sketchMost {
		return 0, 0, false
	}
	var folded [2][sketchMost]byte
	a, b := float64(binary.LittleEndian.Uint16(x)), float64(binary.LittleEndian.Uint16(y))
	p, q := x[sketchHead:], y[sketchHead:]
	for turn := 0; len(q) > len(p); turn ^= 1 {
		half := folded[turn][:len(q)/2]
		for i := range half {
			half[i] = foldByte(q[2*i]) | foldByte(q[2*i+1])<<4
		}
		q = half
	}
	if len(p) != len(q) || a == 0 || b == 0 || max(a, b) > sketchBuckets {
		return 0, 0, false
	}
	odd := 0
	for i := range p {
		odd += bits.OnesCount8(p[i] ^ q[i])
	}
	n := float64(8 * len(p))
	share := min(float64(odd)/n, 0.49) // beyond, nothing can be told
	differ := min(-n/2*math.Log(1-2*share), a+b)
	both := max(a+b-differ, 0) / 2
	// Of N shingles in either so many buckets are filled that both have a part of; N
	// depends on the index again.
	total := shinglesOf(a) + shinglesOf(b)
	jaccard = both / max(a, b)
	filled := 0.0
	for range 8 {
		filled = sketchBuckets
		if !math.IsInf(total, 1) {
			filled = -sketchBuckets * math.Expm1(-total/(1+jaccard)/sketchBuckets)
		}
		jaccard = min(both/filled, 1)
	}
	keep := math.Exp(-2 * differ / n)
	spread := (n*(1-keep*keep)/4 - differ*keep*keep) / (keep * keep) // of differ
	slope := (1 + jaccard) / (2 * filled)
	variance = spread*slope*slope + 1e-6
	if rest := 1 - filled*(1+jaccard)/total; rest > 0 { // shingles that fell into a bucket with others
		variance += jaccard * (1 - jaccard) / filled * rest
	}
	return jaccard, variance, true
}

// shinglesOf estimates how many different shingles filled so many buckets.
func shinglesOf(filled float64) float64 {
	return -sketchBuckets * math.Log1p(-filled/sketchBuckets)
}

// foldByte folds neighbouring bits: each pair becomes one.
func foldByte(b byte) byte {
	b ^= b >> 1
	b &= 0x55
	b = (b | b>>1) & 0x33
	return (b | b>>2) & 0x0f
}
