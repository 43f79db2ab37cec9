// SPDX-License-Identifier: Apache-2.0

package happens

import (
	"math"

	"github.com/iotape/iotape/causal"
)

// Skew is how much the clock of a host is ahead of that of the first host: what
// messages in both directions say, directly or by way of other hosts. A message is
// received after it was sent, so that it bounds the difference on one side.
type Skew struct {
	NS       int64 // in the middle between the bounds; 0 if there is a bound on neither side
	Min, Max int64 // bounds; math.MinInt64 and math.MaxInt64 if there is none
	// Drift is set if no difference fits all messages: the clocks ran at different
	// speeds, or were set.
	Drift bool
}

// Bounded reports whether both bounds are known.
func (s *Skew) Bounded() bool { return s.HasMin() && s.HasMax() }

// HasMin reports whether the lower bound is known, HasMax whether the upper one is.
func (s *Skew) HasMin() bool { return s.Min != math.MinInt64 }

// HasMax reports whether the upper bound is known.
func (s *Skew) HasMax() bool { return s.Max != math.MaxInt64 }

// Skews returns that of each host.
func (o *Order) Skews() []Skew { return o.skew }

// maxSkewHosts bounds the work, which is cubic.
const maxSkewHosts = 512

// unbounded is no bound, far enough from overflow to be added up.
const unbounded = math.MaxInt64 / 4

// findSkew estimates the differences between the clocks.
func (o *Order) findSkew() {
	n := len(o.hosts)
	o.skew = make([]Skew, n)
	for i := range o.skew {
		o.skew[i] = Skew{Min: math.MinInt64, Max: math.MaxInt64}
	}
	if n == 0 {
		return
	}
	o.skew[0] = Skew{}
	if n == 1 || n > maxSkewHosts {
		return
	}
	most := o.bounds()
	ahead, behind := make([]int64, n), make([]int64, n) // by messages to and from the first host itself
	for i := range n {
		ahead[i], behind[i] = most[0][i], most[i][0]
	}
	tighten(most)
	for i := 1; i < n; i++ {
		s := &o.skew[i]
		s.Drift = most[i][i] < 0
		if s.Drift && ahead[i] < unbounded && behind[i] < unbounded {
			s.bound(ahead[i], behind[i]) // what goes round and round is no bound
		} else {
			s.bound(most[0][i], most[i][0])
		}
	}
}

// tighten makes of direct bounds the tightest ones that follow from them: these are the
// shortest paths (Floyd and Warshall).
func tighten(most [][]int64) {
	for k := range most {
		for i := range most {
			if most[i][k] >= unbounded {
				continue
			}
			for j := range most {
				if d := most[i][k] + most[k][j]; most[k][j] < unbounded && d < most[i][j] {
					most[i][j] = max(d, -unbounded) // where nothing fits, it would go on falling
				}
			}
		}
	}
}

// bound sets the bounds: how far the host's clock can be ahead of the first one's at most,
// and the other way round.
func (s *Skew) bound(ahead, behind int64) {
	if ahead < unbounded {
		s.Max = ahead
	}
	if behind < unbounded {
		s.Min = -behind
	}
	switch {
	case s.Bounded():
		s.NS = s.Min + (s.Max-s.Min)/2
	case s.HasMax():
		s.NS = min(s.Max, 0)
	case s.HasMin():
		s.NS = max(s.Min, 0)
	}
}

// bounds returns by how much the clock of one host can be ahead of another's at most:
// [i][j] is of j before i.
func (o *Order) bounds() [][]int64 {
	n := len(o.hosts)
	most := make([][]int64, n)
	for i := range most {
		most[i] = make([]int64, n)
		for j := range most[i] {
			if i != j {
				most[i][j] = unbounded
			}
		}
	}
	for i := range n { // one machine has one clock, though it was set beside the wall's twice
		if k := int(o.Machine(uint32(i))); k != i {
			d := o.hosts[i].Wall(0) - o.hosts[k].Wall(0)
			most[k][i], most[i][k] = d, -d
		}
	}
	for i := range o.enter {
		from, why := o.graph.Before(i)
		to := o.graph.Lines[o.graph.Line[i]].Host
		for k, f := range from {
			by := o.graph.Lines[o.graph.Line[f]].Host
			if by == to || why[k] != causal.Bytes && why[k] != causal.Connect {
				continue
			}
			if d := o.exit[i] - o.enter[f]; d > -unbounded && d < most[by][to] {
				most[by][to] = d
			}
		}
	}
	return most
}
