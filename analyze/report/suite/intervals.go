// SPDX-License-Identifier: Apache-2.0

package suite

import "slices"

// intervals is a set of times, as intervals that do not overlap. Beyond its limit, gaps
// that are short are closed: the set is then too large by at most lost ns.
type intervals struct {
	list   []interval // sorted, disjoint
	recent []interval // to be added
	max    int
	lost   int64
}

type interval struct{ from, to int64 }

// add makes [from, to) a part of the set.
func (s *intervals) add(from, to int64) {
	if to <= from {
		return
	}
	if n := len(s.recent); n > 0 && s.recent[n-1].to == from {
		s.recent[n-1].to = to
		return
	}
	s.recent = append(s.recent, interval{from, to})
	if len(s.recent) >= max(len(s.list)/2, 1024) {
		s.settle()
	}
}

// settle merges what was added.
func (s *intervals) settle() {
	if len(s.recent) == 0 {
		return
	}
	all := append(s.list, s.recent...)
	s.recent = s.recent[:0]
	slices.SortFunc(all, func(a, b interval) int {
		switch {
		case a.from < b.from:
			return -1
		case a.from > b.from:
			return 1
		}
		return 0
	})
	s.list = union(all, 0, nil)
	if s.max <= 0 {
		s.max = 1 << 16
	}
	for gap := int64(1000); len(s.list) > s.max; gap *= 4 {
		s.list = union(s.list, gap, &s.lost)
	}
}

// union merges sorted intervals that are at most gap ns apart; lost counts the gaps.
func union(list []interval, gap int64, lost *int64) []interval {
	out := list[:0]
	for _, x := range list {
		if n := len(out) - 1; n >= 0 && x.from <= out[n].to+gap {
			if lost != nil && x.from > out[n].to {
				*lost += x.from - out[n].to
			}
			out[n].to = max(out[n].to, x.to)
			continue
		}
		out = append(out, x)
	}
	return out
}

// total returns how much time the set has, ns.
func (s *intervals) total() (ns int64) {
	s.settle()
	for _, x := range s.list {
		ns += x.to - x.from
	}
	return ns
}

// common returns how much time two sets share, ns.
func (s *intervals) common(o *intervals) (ns int64) {
	s.settle()
	o.settle()
	for i, j := 0, 0; i < len(s.list) && j < len(o.list); {
		a, b := s.list[i], o.list[j]
		ns += max(min(a.to, b.to)-max(a.from, b.from), 0)
		if a.to < b.to {
			i++
		} else {
			j++
		}
	}
	return ns
}
