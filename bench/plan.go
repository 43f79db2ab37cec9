// SPDX-License-Identifier: Apache-2.0

package bench

// A group is a workload of one size, recorded in several ways of which the first
// is the untraced one. Its runs are interleaved and its ratios are its own.
type group struct {
	workload *Workload
	size     int
	rounds   int
	slow     bool // the size is that of the slow ways
	ways     []*Way
}

// plan lays out what to measure: for each workload a group at full size and, if
// there are slow ways, one at the smaller size.
func plan(workloads []*Workload, ways []*Way, o *Options) []group {
	var groups []group
	for _, w := range workloads {
		var fast, slow []*Way
		for _, way := range ways {
			switch way.kind {
			case recorder, layered:
				fast = append(fast, way)
			case stage:
				if w.stages {
					fast = append(fast, way)
				}
			case peer:
				slow = append(slow, way)
			}
		}
		// Alone, the untraced way is measured too, if there is nothing else.
		if len(fast) > 0 || len(slow) == 0 {
			groups = append(groups,
				group{w, scaled(w.size, o.Scale), o.Rounds, false, append([]*Way{untraced}, fast...)})
		}
		if len(slow) > 0 {
			groups = append(groups,
				group{w, scaled(w.slowSize, o.Scale), o.SlowRounds, true, append([]*Way{untraced}, slow...)})
		}
	}
	return groups
}

func scaled(size int, by float64) int { return max(1, int(float64(size)*by)) }

// order returns the ways in the order of a round: each once, and each round
// begins with another one.
func (g *group) order(round int) []*Way {
	n := len(g.ways)
	o := make([]*Way, n)
	for i := range o {
		o[i] = g.ways[(round+i)%n]
	}
	return o
}
