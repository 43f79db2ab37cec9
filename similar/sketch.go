package similar

import (
	"encoding/binary"
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

// digester computes digests: shingles and seed are the defaults.
var digester = func() *Signer {
	s, err := NewSigner(&Options{Hashes: DigestHashes})
	if err != nil {
		panic(err)
	}
	return s
}()

// Digester computes digests. It is not safe for concurrent use.
type Digester struct{ sig Signature }

// Sum returns the digest of content.
func (d *Digester) Sum(content []byte) (out Digest) {
	hash := blake3.Sum256(content)
	copy(out[:8], hash[:])
	d.sig = digester.Sign(d.sig[:0], content)
	for i, v := range d.sig {
		// Mixed again: the least of many values has zeros above, and bits that are as good
		// as random below, but borrowed numbers would agree bit by bit.
		out[8+i/8] |= byte(mix(v+uint64(i)*golden)&1) << (i % 8)
	}
	return out
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
