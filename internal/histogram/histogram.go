// SPDX-License-Identifier: Apache-2.0

// Package histogram counts durations, so that quantiles of any number of them can be
// told with little memory.
package histogram

import (
	"iter"
	"math/bits"
)

// A Histogram counts durations in buckets whose width is at most 1/64 of their
// lower bound; a quantile is the middle of its bucket, so it is off by at most
// 0.8 %. Durations below 128 ns are exact.
type Histogram struct {
	octaves [64 - subBits]*[subBuckets]uint64
	small   [2 * subBuckets]uint64
	Count   uint64
	Max     int64 // ns
}

const (
	subBits    = 6
	subBuckets = 1 << subBits
)

// Add counts a duration in ns; negative ones count as 0.
func (h *Histogram) Add(ns int64) {
	ns = max(ns, 0)
	h.Count++
	h.Max = max(h.Max, ns)
	if ns < 2*subBuckets {
		h.small[ns]++
		return
	}
	shift := bits.Len64(uint64(ns)) - 1 - subBits // at least 1
	if h.octaves[shift] == nil {
		h.octaves[shift] = new([subBuckets]uint64)
	}
	h.octaves[shift][uint64(ns)>>shift-subBuckets]++
}

// Quantile returns the duration that a share q of all do not exceed, 0 if there
// are none.
func (h *Histogram) Quantile(q float64) int64 {
	if h.Count == 0 {
		return 0
	}
	rank := uint64(q * float64(h.Count))
	if float64(rank) < q*float64(h.Count) {
		rank++
	}
	rank = min(max(rank, 1), h.Count)
	seen := uint64(0)
	for ns, n := range h.small {
		if seen += n; seen >= rank {
			return min(int64(ns), h.Max)
		}
	}
	for shift, octave := range h.octaves {
		if octave == nil {
			continue
		}
		for i, n := range octave {
			if seen += n; seen >= rank {
				low := int64(i+subBuckets) << shift
				return min(low+1<<shift/2, h.Max)
			}
		}
	}
	return h.Max
}

// Buckets gives how many durations are about as long as ns, which AddN puts into the same bucket.
func (h *Histogram) Buckets() iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		for ns, n := range h.small {
			if n > 0 && !yield(int64(ns), n) {
				return
			}
		}
		for shift, octave := range h.octaves {
			if octave == nil {
				continue
			}
			for i, n := range octave {
				if n > 0 && !yield(int64(i+subBuckets)<<shift, n) {
					return
				}
			}
		}
	}
}

// AddN counts n durations.
func (h *Histogram) AddN(ns int64, n uint64) {
	if n == 0 {
		return
	}
	h.Add(ns)
	ns = max(ns, 0)
	h.Count += n - 1
	if ns < 2*subBuckets {
		h.small[ns] += n - 1
		return
	}
	shift := bits.Len64(uint64(ns)) - 1 - subBits
	h.octaves[shift][uint64(ns)>>shift-subBuckets] += n - 1
}

// Merge adds what another histogram counted.
func (h *Histogram) Merge(o *Histogram) {
	h.Count += o.Count
	h.Max = max(h.Max, o.Max)
	for i, n := range o.small {
		h.small[i] += n
	}
	for i, octave := range o.octaves {
		if octave == nil {
			continue
		}
		if h.octaves[i] == nil {
			h.octaves[i] = new([subBuckets]uint64)
		}
		for k, n := range octave {
			h.octaves[i][k] += n
		}
	}
}
