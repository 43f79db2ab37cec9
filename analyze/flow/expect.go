// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"maps"
	"math"
	"slices"

	"github.com/iotape/iotape/predicate"
)

// A Number is what Expect can ask for.
type Number struct {
	Name, About string
	Value       int64
}

// Numbers returns what Expect can ask for; path may be nil.
func (f *Flow) Numbers(path *Path) []Number {
	s := &f.stats
	list := []Number{
		{"events", "events of all tapes", int64(s.Events)},
		{"hosts", "hosts whose events are in the tapes", int64(s.Hosts)},
		{"moves", "sides of events that moved content", int64(s.Moves)},
		{"bytes", "that they moved", s.Bytes},
		{"contents", "different contents", int64(s.Contents)},
		{"unknown", "moves whose content is not in the tapes", int64(s.Unknown)},
		{"dangling", "streams with one side only", int64(s.OneSided)},
		{"contradictions", "receipts of what nobody sent, and events before themselves", int64(s.Contradictions)},
		{"replicas", "files that were written the same content: the most that there are; with a path, files that it was written to", f.totals["replicas"]},
		{"wrong", "findings that say that data is not what it should be: altered, corrupted, changed, differing, lost, truncated, duplicated, stale and plaintext", 0},
	}
	about := map[Problem]string{
		Altered: "receipts of other bytes than were sent", Corrupted: "reads of other bytes than were written", Changed: "bytes that a process gave out otherwise than it took them in",
		Lost:      "messages that a process took in and did not give out as the others",
		Truncated: "messages and files of which only the first part was given out or kept", Duplicated: "messages that were taken in once and given out twice",
		Stale:     "answers with an older version than the stored one",
		Reordered: "messages that were given out in another order than most",
		Differing: "replicas that are not like the others", Plaintext: "moves that can be read where nothing should be", Unmatched: "sends of what the process had not read or received",
		Rewritten: "writes of data that the host had written before", Shuffled: "files read again in another order", SameOrder: "files read again in the same order",
	}
	for _, p := range Problems {
		n := f.totals[string(p)]
		if p.Wrong() {
			list[9].Value += n
		}
		list = append(list, Number{string(p), about[p], n})
	}
	reached, files, hosts, least := 0, map[*Object]bool{}, map[uint32]bool{}, 1.0
	if path != nil {
		like := path.likeness()
		for _, v := range like {
			least = min(least, v)
		}
		for _, id := range path.Moves {
			m := f.Move(id)
			reached++
			hosts[f.order.Machine(m.Process.Host)] = true
			if v, ok := like[id]; m.Object.Kind == File && m.Write && (v >= f.o.Threshold || !ok) {
				files[m.Object] = true
			}
		}
		list[8].Value = int64(len(files))
	}
	return append(list,
		Number{"path", "moves of the path; 0 without --from and --to", int64(reached)},
		Number{"path_hosts", "machines that it leads through", int64(len(hosts))},
		Number{"similarity", "how much of a move's content comes from the path, in percent: the least",
			int64(math.Floor(100*least + 1e-4))})
}

// likeness returns how much of the content of each move, 0 to 1, is of the moves that it
// comes from in the path, all together.
func (p *Path) likeness() map[int]float64 {
	like, changed := map[int]float64{}, map[int]float64{}
	for i := range p.Edges {
		e := &p.Edges[i]
		switch part := float64(e.Bytes) / float64(max(e.Of, 1)); {
		case e.Changed && e.Why != Processed:
			changed[e.To] += part * (1 - e.Similarity)
			like[e.To] += part
		case e.Changed || e.Estimated:
			like[e.To] = max(like[e.To], e.Similarity)
		default:
			like[e.To] += part
		}
	}
	for id := range like {
		like[id] = min(like[id], 1) - changed[id]
	}
	return like
}

// Expect reports whether what an expression says of the Numbers is so.
func (f *Flow) Expect(x *predicate.Expr, path *Path) (bool, error) {
	values := map[string]int64{}
	for _, n := range f.Numbers(path) {
		values[n.Name] = n.Value
	}
	return x.OfNumbers(values, slices.Sorted(maps.Keys(values)))
}
