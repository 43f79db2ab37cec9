// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"fmt"
	"math"
	"slices"
)

// Class is the number of a class of equal signatures, from 0 in the order of the first of
// each.
type Class uint32

// Index finds signatures that may be similar. A signature is cut into bands of some
// rows each; two are candidates if they agree in all rows of any band.
type Index struct {
	bands, rows int
	maxBucket   int

	classes map[uint64][]Class // by hash of the whole signature
	sigs    []Signature        // of each class
	counts  []uint64
	buckets []map[uint64][]Class // of each band
	skipped uint64
}

// IndexOptions for NewIndex. Zero values are the defaults.
type IndexOptions struct {
	// Threshold is the Jaccard index from which on pairs are wanted, 0 to 1. 0 is 0.8.
	Threshold float64
	// Hashes is how many numbers signatures have. 0 is 128.
	Hashes int
	// Recall is the part of the pairs at the threshold that is to be found: above it are
	// more. 0 is 0.98.
	Recall float64
	// MaxBucket limits the classes that are compared because of one band, for content
	// that resembles everything. What is left out is counted. 0 is 4096.
	MaxBucket int
}

// NewIndex returns an empty index. It takes the longest bands, which give the fewest
// candidates, that find what is wanted.
func NewIndex(o *IndexOptions) (*Index, error) {
	var is IndexOptions
	if o != nil {
		is = *o
	}
	if is.Threshold == 0 {
		is.Threshold = 0.8
	}
	if is.Hashes == 0 {
		is.Hashes = 128
	}
	if is.Recall == 0 {
		is.Recall = 0.98
	}
	if is.MaxBucket == 0 {
		is.MaxBucket = 4096
	}
	switch {
	case is.Threshold < 0 || is.Threshold > 1 || is.Recall < 0 || is.Recall >= 1:
		return nil, fmt.Errorf("index for a threshold of %v and a recall of %v: both are parts of 1", is.Threshold,
			is.Recall)
	case is.Hashes < 1 || is.Hashes > MaxHashes || is.MaxBucket < 0:
		return nil, fmt.Errorf("index of signatures of %d numbers: 1 to %d are possible", is.Hashes, MaxHashes)
	}
	x := &Index{maxBucket: is.MaxBucket, classes: map[uint64][]Class{}, rows: 1}
	for rows := 2; rows <= is.Hashes; rows++ {
		if found(is.Threshold, is.Hashes/rows, rows) < is.Recall {
			break
		}
		x.rows = rows
	}
	x.bands = is.Hashes / x.rows
	x.buckets = make([]map[uint64][]Class, x.bands)
	for i := range x.buckets {
		x.buckets[i] = map[uint64][]Class{}
	}
	return x, nil
}

// found is the probability that a pair of some Jaccard index is a candidate.
func found(jaccard float64, bands, rows int) float64 {
	return 1 - math.Pow(1-math.Pow(jaccard, float64(rows)), float64(bands))
}

// Bands returns how many bands of how many rows the index has.
func (x *Index) Bands() (bands, rows int) { return x.bands, x.rows }

// Classes returns how many different signatures were added.
func (x *Index) Classes() int { return len(x.sigs) }

// Count returns how many signatures of a class were added.
func (x *Index) Count(c Class) uint64 { return x.counts[c] }

// Signature returns that of a class.
func (x *Index) Signature(c Class) Signature { return x.sigs[c] }

// Skipped returns how many candidates were left out because of MaxBucket.
func (x *Index) Skipped() uint64 { return x.skipped }

// Add puts a signature into its class, which it returns; fresh is set for the first of
// the class. The signature is kept only then, and must not change. One of another length
// than the index is for, as that of no content, has no class.
func (x *Index) Add(s Signature) (c Class, fresh, ok bool) {
	if len(s) < x.bands*x.rows {
		return 0, false, false
	}
	key := hashNumbers(s)
	for _, c := range x.classes[key] {
		if slices.Equal(x.sigs[c], s) {
			x.counts[c]++
			return c, false, true
		}
	}
	c = Class(len(x.sigs))
	x.sigs, x.counts = append(x.sigs, s), append(x.counts, 1)
	x.classes[key] = append(x.classes[key], c)
	for i := range x.buckets {
		band := hashNumbers(s[i*x.rows:][:x.rows])
		x.buckets[i][band] = append(x.buckets[i][band], c)
	}
	return c, true, true
}

func hashNumbers(s Signature) (h uint64) {
	for _, v := range s {
		h = mix(h ^ v*golden)
	}
	return h
}

// Near calls f with each class that is a candidate for similarity with class c and has
// a lower number, once each. So after each fresh Add, or for all classes in the end,
// it gives every pair once.
func (x *Index) Near(c Class, f func(other Class)) {
	seen := map[Class]bool{}
	for i := range x.buckets {
		bucket := x.buckets[i][hashNumbers(x.sigs[c][i*x.rows:][:x.rows])]
		for n, other := range bucket {
			if other >= c {
				break // they are in order
			}
			if n >= x.maxBucket {
				at, _ := slices.BinarySearch(bucket, c)
				x.skipped += uint64(at - n)
				break
			}
			if !seen[other] {
				seen[other] = true
				f(other)
			}
		}
	}
}
