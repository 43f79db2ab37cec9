// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"fmt"
	"math"
)

// MaxShingle is the longest shingle, in bytes: one fits into a number, so sets of
// shingles are exact.
const MaxShingle = 8

// MaxHashes limits the numbers of a signature.
const MaxHashes = 1 << 14

// Options for signatures. Zero values are the defaults.
type Options struct {
	// Shingle is k, in bytes, at most MaxShingle. 0 is 8: in binary data shorter runs
	// coincide by chance.
	Shingle int
	// Hashes is how many numbers a signature has. The standard error of an estimate is
	// at most 1/(2√Hashes). 0 is 128: ±0.044.
	Hashes int
	// Seed chooses the hash functions. Signatures of different seeds cannot be
	// compared.
	Seed uint64
	// AllHashes computes each number with a function of its own, as MinHash was
	// published. Else one function serves all (one-permutation hashing; Li, Owen and
	// Zhang, 2012): its values are dealt out to the numbers, and numbers that get none
	// borrow from others (optimal densification; Shrivastava, 2017). That is Hashes
	// times faster, and as good but for content of fewer shingles than Hashes.
	AllHashes bool
}

func (o *Options) fill() error {
	if o.Shingle == 0 {
		o.Shingle = 8
	}
	if o.Hashes == 0 {
		o.Hashes = 128
	}
	if o.Shingle < 1 || o.Shingle > MaxShingle {
		return fmt.Errorf("shingles of %d bytes: 1 to %d are possible", o.Shingle, MaxShingle)
	}
	if o.Hashes < 1 || o.Hashes > MaxHashes {
		return fmt.Errorf("signatures of %d numbers: 1 to %d are possible", o.Hashes, MaxHashes)
	}
	return nil
}

// Signature estimates what content resembles. That of no content is nil.
type Signature []uint64

// Estimate returns an estimate of the Jaccard index of the contents of two signatures
// of one Signer: 0 to 1.
func Estimate(a, b Signature) float64 {
	if len(a) == 0 || len(a) != len(b) {
		return 0
	}
	same := 0
	for i, v := range a {
		if v == b[i] {
			same++
		}
	}
	return float64(same) / float64(len(a))
}

// Signer makes signatures.
type Signer struct {
	o     Options
	seeds []uint64 // of each number, with AllHashes
}

// NewSigner returns a Signer. Nil options are the defaults.
func NewSigner(o *Options) (*Signer, error) {
	s := &Signer{}
	if o != nil {
		s.o = *o
	}
	if err := s.o.fill(); err != nil {
		return nil, err
	}
	if s.o.AllHashes {
		s.seeds = make([]uint64, s.o.Hashes)
		for i := range s.seeds {
			s.seeds[i] = mix(s.o.Seed + uint64(i+1)*golden)
		}
	}
	return s, nil
}

// Options returns the options with the defaults filled in.
func (s *Signer) Options() Options { return s.o }

// Sign appends the signature of content to dst, which may be nil. Content that is shorter
// than a shingle counts as one.
func (s *Signer) Sign(dst Signature, content []byte) Signature {
	if len(content) == 0 {
		return dst
	}
	at := len(dst)
	for range s.o.Hashes {
		dst = append(dst, math.MaxUint64)
	}
	sig := dst[at:]
	if s.o.AllHashes {
		s.all(sig, content)
	} else {
		s.one(sig, content)
	}
	return dst
}

func (s *Signer) all(sig Signature, content []byte) {
	shingles(content, s.o.Shingle, func(v uint64) {
		for i, seed := range s.seeds {
			sig[i] = min(sig[i], mix(v^seed))
		}
	})
}

// one is a loop of its own, not shingles with a function: it is where the time goes.
func (s *Signer) one(sig Signature, content []byte) {
	n, k := uint64(len(sig)), s.o.Shingle
	seed, mask := mix(s.o.Seed+golden), maskOf(k)
	var v uint64
	for i, c := range content {
		v = v<<8 | uint64(c)
		if i < k-1 && i < len(content)-1 {
			continue
		}
		h := mix(v&mask ^ seed)
		// The upper bits choose the number, the lower ones are its value.
		if i, low := h>>32*n>>32, h&math.MaxUint32; low < sig[i] {
			sig[i] = low
		}
	}
	densify(sig, seed)
}

// densify lets numbers that got nothing borrow one of another that did, always in the same
// way: for two contents that differ little it is the same one.
func densify(sig Signature, seed uint64) {
	n := uint64(len(sig))
	var got [MaxHashes / 64]uint64
	for i, v := range sig {
		if v != math.MaxUint64 {
			got[i/64] |= 1 << (i % 64)
		}
	}
	for i := range sig {
		if got[i/64]>>(i%64)&1 != 0 {
			continue
		}
		for try := uint64(1); ; try++ {
			j := mix(seed^uint64(i)*golden+try) >> 32 * n >> 32
			if got[j/64]>>(j%64)&1 != 0 {
				sig[i] = sig[j]
				break
			}
		}
	}
}

// shingles calls f with every run of k bytes, as a number; with the whole content if
// that is shorter.
func shingles(content []byte, k int, f func(v uint64)) {
	mask := maskOf(k)
	var v uint64
	for i, c := range content {
		if v = v<<8 | uint64(c); i >= k-1 || i == len(content)-1 {
			f(v & mask)
		}
	}
}

// maskOf keeps k bytes of a number.
func maskOf(k int) uint64 { return math.MaxUint64 >> (64 - 8*k) }

const golden = 0x9e3779b97f4a7c15

// mix is the finaliser of MurmurHash3 for 64 bits, in the variant of splitmix64
// (Steele, Lea and Flood, 2014): a permutation of which each bit depends on all.
func mix(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}
