// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"slices"
	"sort"
)

// interval is the numbers from lo to hi, both included.
type interval struct{ lo, hi int64 }

// intervals is a set of numbers: sorted, and neither overlapping nor adjacent.
type intervals []interval

// newIntervals makes a set of any intervals; those with lo > hi are empty.
func newIntervals(list []interval) intervals {
	list = slices.DeleteFunc(list, func(i interval) bool { return i.lo > i.hi })
	slices.SortFunc(list, func(a, b interval) int {
		if a.lo < b.lo {
			return -1
		}
		if a.lo > b.lo {
			return 1
		}
		return 0
	})
	var s intervals
	for _, i := range list {
		if n := len(s); n > 0 && (s[n-1].hi == maxI64 || i.lo <= s[n-1].hi+1) {
			s[n-1].hi = max(s[n-1].hi, i.hi)
			continue
		}
		s = append(s, i)
	}
	return s
}

func (s intervals) intersect(t intervals) intervals {
	var both []interval
	for i, j := 0, 0; i < len(s) && j < len(t); {
		both = append(both, interval{max(s[i].lo, t[j].lo), min(s[i].hi, t[j].hi)})
		if s[i].hi < t[j].hi {
			i++
		} else {
			j++
		}
	}
	return newIntervals(both)
}

// complement returns the numbers from lo to hi that are not in s.
func (s intervals) complement(lo, hi int64) intervals {
	var rest []interval
	for _, i := range s {
		if i.lo > lo {
			rest = append(rest, interval{lo, min(hi, i.lo-1)})
		}
		if i.hi >= hi {
			return newIntervals(rest)
		}
		lo = max(lo, i.hi+1)
	}
	return newIntervals(append(rest, interval{lo, hi}))
}

func (s intervals) has(v int64) bool {
	if len(s) <= 4 {
		for i := range s {
			if v >= s[i].lo && v <= s[i].hi {
				return true
			}
		}
		return false
	}
	i := sort.Search(len(s), func(i int) bool { return s[i].hi >= v })
	return i < len(s) && s[i].lo <= v
}
