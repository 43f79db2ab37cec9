package replay

import (
	"cmp"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/histogram"
)

// tally counts what calls did, and how long they took.
type tally struct {
	ops        map[event.Op]*opTally
	last       *opTally // of lastOp
	lastOp     event.Op
	pacer      pacer
	rate       series // bytes over time
	before     series // the same as recorded
	begin, end int64  // ns; of the first of these as recorded, of the last
	untimed    int    // plain steps since the last one that was timed
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

func (a *tally) op(op event.Op) *opTally {
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

// recorded counts a task that will be done, as it was recorded.
func (a *tally) recorded(t *task) {
	if t.action == emulate || t.ev.Kind != event.Call {
		return
	}
	n := t.bytes()
	if a.end == 0 {
		a.begin, a.end = t.ev.Enter, t.ev.Exit
	}
	a.begin, a.end = min(a.begin, t.ev.Enter), max(a.end, t.ev.Exit)
	a.op(t.op).recorded.add(n, t.ev.Exit-t.ev.Enter)
	a.before.add(t.ev.Exit, n)
}

// bytes returns how many bytes a task moves.
func (t *task) bytes() int64 { return t.ev.Traffic().Bytes() }

// replayed counts a call that was made and timed, counted one that was not timed.
func (a *tally) replayed(op event.Op, bytes, from, to int64) {
	a.op(op).replayed.add(bytes, to-from)
	a.rate.add(to, bytes)
}

func (a *tally) counted(op event.Op, bytes int64) {
	s := &a.op(op).replayed
	s.count++
	s.bytes += bytes
	a.rate.late += bytes
}

// merge adds what a worker counted.
func (a *tally) merge(o *tally, p *pacer) {
	for op, t := range o.ops {
		s := &a.op(op).replayed
		s.count += t.replayed.count
		s.bytes += t.replayed.bytes
		s.total += t.replayed.total
		s.times.Merge(&t.replayed.times)
	}
	a.pacer.merge(p)
	a.rate.merge(&o.rate)
}

// into writes the sums into a report.
func (a *tally) into(r *Report, s *schedule) {
	r.Timing = a.pacer.timing(s)
	r.Timing.RecordedNS = a.end - a.begin
	for op, t := range a.ops {
		r.Ops = append(r.Ops, OpTiming{Op: op.String(), Recorded: t.recorded.latency(), Replayed: t.replayed.latency()})
	}
	slices.SortFunc(r.Ops, func(x, y OpTiming) int {
		return cmp.Or(cmp.Compare(y.Recorded.TotalNS, x.Recorded.TotalNS), cmp.Compare(x.Op, y.Op))
	})
	r.RecordedRate, r.ReplayedRate = a.before.rate(), a.rate.rate()
}

func (s *side) latency() Latency {
	l := Latency{Count: s.count, Bytes: s.bytes, Timed: s.times.Count, MaxNS: s.times.Max}
	l.P50NS, l.P95NS, l.P99NS = s.times.Quantile(0.5), s.times.Quantile(0.95), s.times.Quantile(0.99)
	if l.TotalNS = s.total; l.Timed > 0 && l.Timed < l.Count {
		l.TotalNS = int64(float64(s.total) * float64(l.Count) / float64(l.Timed))
	}
	return l
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
