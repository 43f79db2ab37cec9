// SPDX-License-Identifier: Apache-2.0

package flow

import "slices"

// Limits of a story.
const (
	storyBack  = 12 // moves before those of the finding
	storyAhead = 8  // moves behind them
)

// Story returns the way of the data of a finding, as moves in the order of the way: where it
// came from, the moves that show the finding, and where it went. At each place the way goes
// on where most of the bytes go.
func (f *Flow) Story(x *Finding) []int {
	if len(x.Moves) == 0 {
		return nil
	}
	way := slices.Clone(x.Moves)
	for range storyBack {
		from, ok := mostBytes(f.Before(way[0]), way, func(e *Edge) int { return e.From })
		if !ok {
			break
		}
		way = slices.Insert(way, 0, from)
	}
	for range storyAhead {
		to, ok := mostBytes(f.After(way[len(way)-1]), way, func(e *Edge) int { return e.To })
		if !ok {
			break
		}
		way = append(way, to)
	}
	return way
}

// mostBytes returns the end of the edge with most bytes that is not on the way yet.
func mostBytes(edges []Edge, way []int, end func(*Edge) int) (best int, ok bool) {
	most := int64(-1)
	for i := range edges {
		e := &edges[i]
		if e.Bytes > most && !slices.Contains(way, end(e)) {
			best, most, ok = end(e), e.Bytes, true
		}
	}
	return best, ok
}
