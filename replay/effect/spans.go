// SPDX-License-Identifier: Apache-2.0

package effect

import "slices"

// Span is a range of bytes, to excluded.
type Span struct{ From, To int64 }

// Spans is a sorted list of ranges that neither touch nor overlap.
type Spans []Span

// search returns the index of the first span that ends at or after off.
func (s Spans) search(off int64) int {
	i, _ := slices.BinarySearchFunc(s, off, func(e Span, off int64) int {
		if e.To < off {
			return -1
		}
		return 1
	})
	return i
}

// Add merges a range in.
func (s *Spans) Add(from, to int64) {
	if to <= from {
		return
	}
	i := s.search(from)
	j := i
	for j < len(*s) && (*s)[j].From <= to {
		from, to = min(from, (*s)[j].From), max(to, (*s)[j].To)
		j++
	}
	*s = slices.Replace(*s, i, j, Span{from, to})
}

// Remove cuts a range out.
func (s *Spans) Remove(from, to int64) {
	if to <= from {
		return
	}
	i := s.search(from)
	if i < len(*s) && (*s)[i].To == from {
		i++
	}
	j := i
	var rest Spans
	for ; j < len(*s) && (*s)[j].From < to; j++ {
		if e := (*s)[j]; e.From < from {
			rest = append(rest, Span{e.From, from})
		}
		if e := (*s)[j]; e.To > to {
			rest = append(rest, Span{to, e.To})
		}
	}
	*s = slices.Replace(*s, i, j, rest...)
}

// Overlaps reports whether a part of a range is in the list.
func (s Spans) Overlaps(from, to int64) bool {
	i := s.search(from)
	if i < len(s) && s[i].To == from {
		i++
	}
	return from < to && i < len(s) && s[i].From < to
}

// Missing returns the parts of a range that are not in the list.
func (s Spans) Missing(from, to int64) []Span {
	var out []Span
	for i := s.search(from); i < len(s) && s[i].From < to; i++ {
		if s[i].From > from {
			out = append(out, Span{from, s[i].From})
		}
		from = max(from, s[i].To)
	}
	if from < to {
		out = append(out, Span{from, to})
	}
	return out
}
