// SPDX-License-Identifier: Apache-2.0

package result

import (
	"slices"

	"github.com/iotape/iotape/internal/histogram"
)

// Copies is what came of several replays of one tape at once.
type Copies struct {
	Copies []*Report `json:"copies"`
	// RecordedNS is how long the calls went on as recorded; the others are the shortest, the median and
	// the longest of the copies.
	RecordedNS int64 `json:"recorded_ns"`
	MinNS      int64 `json:"min_ns"`
	MedianNS   int64 `json:"median_ns"`
	MaxNS      int64 `json:"max_ns"`
	// Ops has the calls as recorded, once, beside those of all copies together.
	Ops []OpTiming `json:"ops"`

	times map[string]*histogram.Histogram // by operation
}

// OK reports whether each copy agreed with the recording.
func (c *Copies) OK() bool {
	return !slices.ContainsFunc(c.Copies, func(r *Report) bool { return !r.OK() })
}

// Add adds the report of a copy; the times of its calls are taken out of it.
func (c *Copies) Add(r *Report) {
	if c.times == nil {
		c.times = map[string]*histogram.Histogram{}
	}
	for i := range r.Ops {
		o := &r.Ops[i]
		at := slices.IndexFunc(c.Ops, func(k OpTiming) bool { return k.Op == o.Op })
		if at < 0 {
			at = len(c.Ops)
			c.Ops = append(c.Ops, OpTiming{Op: o.Op, Recorded: o.Recorded})
			c.times[o.Op] = new(histogram.Histogram)
		}
		all, times := &c.Ops[at].Replayed, c.times[o.Op]
		all.Count += o.Replayed.Count
		all.Bytes += o.Replayed.Bytes
		all.TotalNS += o.Replayed.TotalNS
		all.MaxNS = max(all.MaxNS, o.Replayed.MaxNS)
		for _, t := range o.Replayed.Times {
			times.AddN(t.NS, t.Count)
		}
		o.Replayed.Times = nil
	}
	c.Copies = append(c.Copies, r)
}

// Finish fills in what depends on all copies.
func (c *Copies) Finish() {
	for i := range c.Ops {
		l, times := &c.Ops[i].Replayed, c.times[c.Ops[i].Op]
		times.Max = max(times.Max, l.MaxNS)
		l.Timed = times.Count
		l.P50NS, l.P95NS, l.P99NS = times.Quantile(0.5), times.Quantile(0.95), times.Quantile(0.99)
	}
	var took []int64
	for _, r := range c.Copies {
		if r.Timing != nil {
			took = append(took, r.Timing.ReplayedNS)
			c.RecordedNS = max(c.RecordedNS, r.Timing.RecordedNS)
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		c.MinNS, c.MedianNS, c.MaxNS = took[0], took[len(took)/2], took[len(took)-1]
	}
}
