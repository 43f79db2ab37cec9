package report

import "math/bits"

// A histogram counts durations in buckets whose width is at most 1/64 of their
// lower bound; a quantile is the middle of its bucket, so it is off by at most
// 0.8 %. Durations below 128 ns are exact.
type histogram struct {
	octaves [64 - subBits]*[subBuckets]uint64
	small   [2 * subBuckets]uint64
	count   uint64
	max     int64
}

const (
	subBits    = 6
	subBuckets = 1 << subBits
)

// add counts a duration in ns; negative ones count as 0.
func (h *histogram) add(ns int64) {
	ns = max(ns, 0)
	h.count++
	h.max = max(h.max, ns)
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

// quantile returns the duration that a share q of all do not exceed, 0 if there
// are none.
func (h *histogram) quantile(q float64) int64 {
	if h.count == 0 {
		return 0
	}
	rank := uint64(q * float64(h.count))
	if float64(rank) < q*float64(h.count) {
		rank++
	}
	rank = min(max(rank, 1), h.count)
	seen := uint64(0)
	for ns, n := range h.small {
		if seen += n; seen >= rank {
			return min(int64(ns), h.max)
		}
	}
	for shift, octave := range h.octaves {
		if octave == nil {
			continue
		}
		for i, n := range octave {
			if seen += n; seen >= rank {
				low := int64(i+subBuckets) << shift
				return min(low+1<<shift/2, h.max)
			}
		}
	}
	return h.max
}
