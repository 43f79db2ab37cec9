// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"cmp"
	"slices"
)

// Pairs finds the similar ones of many contents, once all are known. It is what Index
// does, in a tenth of the memory: of each content it keeps a number for each band, and
// looks at one band after the other.
type Pairs struct {
	o     IndexOptions
	bands int
	rows  int
	keys  []uint32 // of each content, one for each band
	n     int
}

// NewPairs returns a Pairs without contents.
func NewPairs(o *IndexOptions) (*Pairs, error) {
	x, err := NewIndex(o)
	if err != nil {
		return nil, err
	}
	p := &Pairs{bands: x.bands, rows: x.rows}
	p.o.MaxBucket = x.maxBucket
	return p, nil
}

// Add takes the signature of a content, and returns its number, from 0. It does not keep
// it. One of no content, or of another length, is similar to none.
func (p *Pairs) Add(s Signature) int {
	for i := range p.bands {
		key := uint32(0)
		if len(s) >= p.bands*p.rows {
			key = uint32(hashNumbers(s[i*p.rows:][:p.rows])) | 1
		}
		p.keys = append(p.keys, key)
	}
	p.n++
	return p.n - 1
}

// AddDigest takes the digest of a content: its bands are of bits.
func (p *Pairs) AddDigest(d *Digest) int {
	at := 0
	for i := range p.bands {
		key := uint32(1 + i)
		for range p.rows {
			bit := uint32(d[8+at/8]>>(at%8)) & 1
			key, at = key<<1|bit, at+1
		}
		p.keys = append(p.keys, key|1<<31)
	}
	p.n++
	return p.n - 1
}

// NewDigestPairs is NewPairs for digests. The bands of bits are short, and many unlike
// contents agree in one: it is for some hundred thousand contents.
func NewDigestPairs(o *IndexOptions) (*Pairs, error) {
	p, err := NewPairs(o)
	if err != nil {
		return nil, err
	}
	threshold := 0.8
	if o != nil && o.Threshold != 0 {
		threshold = o.Threshold
	}
	agree := (1 + threshold) / 2 // of a bit
	for p.rows = 8; p.rows < 24 && found(agree, DigestHashes/(p.rows+1), p.rows+1) >= 0.98; p.rows++ {
	}
	p.bands = DigestHashes / p.rows
	return p, nil
}

// All calls f with each pair that may be similar, a < b, once. skipped is how many were
// left out because of IndexOptions.MaxBucket.
func (p *Pairs) All(f func(a, b int)) (skipped uint64) {
	type entry struct{ key, id uint32 }
	list := make([]entry, 0, p.n)
	for band := range p.bands {
		list = list[:0]
		for i := range p.n {
			if k := p.keys[i*p.bands+band]; k != 0 {
				list = append(list, entry{k, uint32(i)})
			}
		}
		slices.SortFunc(list, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.key, b.key),
				cmp.Compare(a.id, b.id))
		})
		for from := 0; from < len(list); {
			to := from + 1
			for to < len(list) && list[to].key == list[from].key {
				to++
			}
			for i := from + 1; i < to; i++ {
				if over := i - from - p.o.MaxBucket; over > 0 {
					skipped += uint64(over)
				}
				for k := from; k < min(i, from+p.o.MaxBucket); k++ {
					if a, b := int(list[k].id), int(list[i].id); !p.earlier(a, b, band) {
						f(a, b)
					}
				}
			}
			from = to
		}
	}
	return skipped
}

// earlier reports whether a pair agreed in a band before.
func (p *Pairs) earlier(a, b, band int) bool {
	x, y := p.keys[a*p.bands:][:band], p.keys[b*p.bands:][:band]
	for i := range x {
		if x[i] == y[i] && x[i] != 0 {
			return true
		}
	}
	return false
}
