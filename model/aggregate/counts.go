// SPDX-License-Identifier: Apache-2.0

package aggregate

import "math/bits"

// Counts is what is counted of the calls of a row.
type Counts struct {
	Calls      uint64
	Failed     uint64 // returned an error
	Unfinished uint64 // did not return: those that end a thread, and those that its end cut short
	Untimed    uint64 // returned, but it is not known when: calls of foreign traces
	Read       uint64 // bytes that the calls moved to the program
	Written    uint64 // bytes that they moved from it; within the kernel: both
	NS         uint64 // of all whose latency is known, together
	MaxNS      uint64 // of the longest
	Latency    Histogram
}

// Add adds what others counted.
func (c *Counts) Add(o *Counts) {
	c.Calls += o.Calls
	c.Failed += o.Failed
	c.Unfinished += o.Unfinished
	c.Untimed += o.Untimed
	c.Read += o.Read
	c.Written += o.Written
	c.NS += o.NS
	c.MaxNS = max(c.MaxNS, o.MaxNS)
	for i, n := range o.Latency {
		c.Latency[i] += n
	}
}

// Bytes returns what was moved, either way.
func (c *Counts) Bytes() uint64 { return c.Read + c.Written }

// Timed returns of how many calls the latency is known.
func (c *Counts) Timed() uint64 { return c.Calls - min(c.Unfinished+c.Untimed, c.Calls) }

// MeanNS returns the mean latency, 0 if no latency is known.
func (c *Counts) MeanNS() uint64 {
	if n := c.Timed(); n > 0 {
		return c.NS / n
	}
	return 0
}

// Quantile returns the latency, in ns, that a share q of the calls did not exceed.
func (c *Counts) Quantile(q float64) uint64 { return min(c.Latency.Quantile(q), c.MaxNS) }

// Buckets of a histogram: bucket 0 is below 64 ns, then there are four for each power of
// two; the last one has no end. It is the kernel programs' scheme (bpf/count.c), in which
// a bucket's number costs a few shifts.
const (
	Buckets     = 128
	firstOctave = 6
)

// Histogram counts latencies by bucket. A quantile is the middle of its bucket: off by
// at most 12.5 %.
type Histogram [Buckets]uint64

// log2 returns the logarithm to base 2, rounded down; of 0, 0.
func log2(v uint64) int { return bits.Len64(v|1) - 1 }

// BucketOf returns the bucket of a latency in ns.
func BucketOf(ns uint64) int {
	o := log2(ns)
	if o < firstOctave {
		return 0
	}
	return min(1+4*(o-firstOctave)+int(ns>>(o-2)&3), Buckets-1)
}

// BucketRange returns the latencies of a bucket, from low to before high, in ns.
func BucketRange(i int) (low, high uint64) {
	if i <= 0 {
		return 0, 1 << firstOctave
	}
	edge := func(i int) uint64 { return uint64(4+(i-1)%4) << ((i-1)/4 + firstOctave - 2) }
	i = min(i, Buckets-1)
	return edge(i), edge(i + 1)
}

// Quantile returns the latency that a share q of all did not exceed, 0 if there are none.
func (h *Histogram) Quantile(q float64) uint64 {
	total := uint64(0)
	for _, n := range h {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank := uint64(q * float64(total))
	if float64(rank) < q*float64(total) {
		rank++
	}
	rank = min(max(rank, 1), total)
	for i, n := range h {
		if n >= rank {
			low, high := BucketRange(i)
			return low + (high-low)/2
		}
		rank -= n
	}
	return 0
}
