// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/histogram"
)

// Tally counts what calls did, and how long they took. The zero value is empty.
type Tally struct {
	ops        map[event.Op]*opTally
	last       *opTally // of lastOp
	lastOp     event.Op
	after      series // bytes over time
	before     series // the same as recorded
	begin, end int64  // ns; of the first of these as recorded, of the last
}

// opTally is what was seen of one operation.
type opTally struct {
	recorded, replayed side
}

type side struct {
	count uint64
	bytes int64
	total int64 // ns, of those that were timed
	times histogram.Histogram
}

func (s *side) add(bytes, ns int64) {
	s.count++
	s.bytes += bytes
	s.total += ns
	s.times.Add(ns)
}

func (a *Tally) op(op event.Op) *opTally {
	if a.last != nil && a.lastOp == op {
		return a.last
	}
	o := a.ops[op]
	if o == nil {
		if a.ops == nil {
			a.ops = map[event.Op]*opTally{}
		}
		o = new(opTally)
		a.ops[op] = o
	}
	a.last, a.lastOp = o, op
	return o
}

// Recorded counts a call that will be made, as it was recorded. Times are in ns.
func (a *Tally) Recorded(op event.Op, bytes, enter, exit int64) {
	if a.end == 0 {
		a.begin, a.end = enter, exit
	}
	a.begin, a.end = min(a.begin, enter), max(a.end, exit)
	a.op(op).recorded.add(bytes, exit-enter)
	a.before.add(exit, bytes)
}

// Replayed counts a call that was made and timed.
func (a *Tally) Replayed(op event.Op, bytes, from, to int64) {
	a.op(op).replayed.add(bytes, to-from)
	a.after.add(to, bytes)
}

// Counted counts a call that was made and not timed.
func (a *Tally) Counted(op event.Op, bytes int64) {
	s := &a.op(op).replayed
	s.count++
	s.bytes += bytes
	a.after.late += bytes
}

// Merge adds what a worker counted.
func (a *Tally) Merge(o *Tally) {
	for op, t := range o.ops {
		s := &a.op(op).replayed
		s.count += t.replayed.count
		s.bytes += t.replayed.bytes
		s.total += t.replayed.total
		s.times.Merge(&t.replayed.times)
	}
	a.after.merge(&o.after)
}

// Fill writes the sums into a report, with the times of a replay.
func (a *Tally) Fill(r *Report, timing *Timing) {
	r.Timing = timing
	r.Timing.RecordedNS = a.end - a.begin
	for op, t := range a.ops {
		r.Ops = append(r.Ops, OpTiming{Op: op.String(), Recorded: t.recorded.latency(), Replayed: t.replayed.latency()})
	}
	slices.SortFunc(r.Ops, func(x, y OpTiming) int {
		return cmp.Or(cmp.Compare(y.Recorded.TotalNS, x.Recorded.TotalNS), cmp.Compare(x.Op, y.Op))
	})
	r.RecordedRate, r.ReplayedRate = a.before.rate(), a.after.rate()
}

func (s *side) latency() Latency {
	l := Latency{Count: s.count, Bytes: s.bytes, Timed: s.times.Count, MaxNS: s.times.Max}
	l.P50NS, l.P95NS, l.P99NS = s.times.Quantile(0.5), s.times.Quantile(0.95), s.times.Quantile(0.99)
	if l.TotalNS = s.total; l.Timed > 0 && l.Timed < l.Count {
		l.TotalNS = int64(float64(s.total) * float64(l.Count) / float64(l.Timed))
	}
	return l
}

// KeepTimes adds the times of calls to what Fill wrote, for Copies.
func (a *Tally) KeepTimes(r *Report) {
	byName := map[string]*opTally{}
	for op, t := range a.ops {
		byName[op.String()] = t
	}
	for i := range r.Ops {
		l := &r.Ops[i].Replayed
		for ns, n := range byName[r.Ops[i].Op].replayed.times.Buckets() {
			l.Times = append(l.Times, Times{ns, n})
		}
	}
}

// rateBins is how many parts a run is divided into at least, once it is long enough.
const rateBins = 200

// series adds up bytes over time. Where time goes on beyond its bins, two become one.
type series struct {
	first int64 // ns; 0: nothing was added
	width int64 // ns
	bins  [2 * rateBins]int64
	late  int64 // bytes, of a time soon to be known
}

func (s *series) add(ns, bytes int64) {
	if s.first == 0 {
		s.first, s.width = ns, 1<<16
	}
	ns = max(ns-s.first, 0)
	for ns/s.width >= int64(len(s.bins)) {
		for i := range rateBins {
			s.bins[i] = s.bins[2*i] + s.bins[2*i+1]
		}
		clear(s.bins[rateBins:])
		s.width *= 2
	}
	s.bins[ns/s.width] += bytes + s.late
	s.late = 0
}

// merge adds another series; both have begun at about the same time.
func (s *series) merge(o *series) {
	if o.first == 0 {
		return
	}
	o.bins[0] += o.late
	if s.first == 0 {
		*s = *o
		return
	}
	if o.first < s.first {
		*s, *o = *o, *s
	}
	for i, n := range o.bins {
		if n != 0 {
			s.add(o.first+int64(i)*o.width, n)
		}
	}
}

func (s *series) rate() Rate {
	last := 0
	for i, n := range s.bins {
		if n != 0 {
			last = i + 1
		}
	}
	return Rate{BinNS: s.width, Bytes: slices.Clone(s.bins[:last])}
}
