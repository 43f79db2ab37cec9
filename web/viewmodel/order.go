// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/causal/happens"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web/spanindex"
)

// laneKey is a lane of one of the tapes.
type laneKey struct{ tape, lane int }

// pair is two lanes between which arrows go.
type pair struct{ from, to laneKey }

// arrows is an index of causes: a line for each pair of lanes. Spans go from the event
// that comes before to the one that comes after; their ID is its position in the order.
type arrows struct {
	index   *spanindex.Index
	pairs   []pair
	dropped uint64 // of pairs beyond the limit
}

// maxPairs limits the pairs of lanes.
const maxPairs = 256 << 10

// reasonNames are those of arrows: causal.Reason without the order within a thread, which
// needs no arrow.
func reasonNames() (names []string) {
	for r := causal.Fork; r <= causal.Content; r++ {
		names = append(names, r.String())
	}
	return names
}

// Order finds the order of all events, which takes a while, and puts the clocks of hosts
// right by it. From then on windows have arrows.
func (s *Scene) Order() error {
	s.setState("being computed")
	order, err := happens.Load(s.traces())
	if err != nil {
		s.setState(err.Error())
		return fmt.Errorf("order: %w", err)
	}
	s.mu.Lock()
	s.align(order.Skews())
	s.sumRows()
	s.mu.Unlock()
	a, err := s.findArrows(order)
	if err != nil {
		s.setState(err.Error())
		return fmt.Errorf("order: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order, s.arrows, s.state = order, a, ""
	return nil
}

// traces returns the tapes as they are.
func (s *Scene) traces() []*trace.Tape {
	tapes := make([]*trace.Tape, len(s.tapes))
	for i, t := range s.tapes {
		tapes[i] = t.Tape
	}
	return tapes
}

func (s *Scene) setState(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

func (s *Scene) findArrows(o *happens.Order) (*arrows, error) {
	find := s.newFinder(o)
	a := &arrows{}
	known := map[pair]int{}
	var file bytes.Buffer
	b := spanindex.NewBuilder(&file)
	for i := range o.Len() {
		from, why := o.Before(i)
		if len(from) == 0 {
			continue
		}
		to, ok := find.lane(i)
		if !ok {
			continue
		}
		for k, f := range from {
			at, ok := find.lane(int(f))
			if !ok || at == to {
				continue
			}
			p := pair{at, to}
			line, ok := known[p]
			if !ok {
				if len(a.pairs) >= maxPairs {
					a.dropped++
					continue
				}
				line = len(a.pairs)
				known[p], a.pairs = line, append(a.pairs, p)
			}
			start, end := find.when(int(f), at), find.when(i, to)
			x := spanindex.Span{To: end.exit, ID: uint64(i), Kind: uint8(why[k] - causal.Fork)}
			// Both calls overlap: what the first one did, it did before the second one was done.
			if x.From = start.exit; x.From > x.To {
				x.From = min(start.enter, x.To)
			}
			if err := b.Add(line, &x); err != nil {
				return nil, err
			}
		}
	}
	if err := b.Finish(nil); err != nil {
		return nil, err
	}
	var err error
	a.index, err = spanindex.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	return a, err
}

// finder tells lanes and times of events of an order.
type finder struct {
	s     *Scene
	o     *happens.Order
	first []int                     // of each tape: the order's first host
	lanes []map[threadKey][]laneFor // of each tape
}

// laneFor is a lane and its first event.
type laneFor struct {
	first uint64
	lane  int
}

// moment is the time of an event in the picture.
type moment struct{ enter, exit int64 }

func (s *Scene) newFinder(o *happens.Order) *finder {
	f := &finder{s: s, o: o}
	hosts := 0
	for _, t := range s.tapes {
		f.first = append(f.first, hosts)
		hosts += len(t.Manifest().Hosts)
		m := map[threadKey][]laneFor{}
		for i := range t.Lanes {
			l := &t.Lanes[i]
			key := threadKey{l.Host, l.TID}
			m[key] = append(m[key], laneFor{l.First, i})
		}
		f.lanes = append(f.lanes, m)
	}
	return f
}

// lane returns the lane of the event at a position. Of threads beyond the limit of lanes
// there is none.
func (f *finder) lane(i int) (laneKey, bool) {
	tape, seq := f.o.Event(i)
	line := &f.o.Lines()[f.o.Line(i)]
	list := f.lanes[tape][threadKey{line.Host - uint32(f.first[tape]), line.TID}]
	k := sort.Search(len(list), func(k int) bool { return list[k].first > seq }) - 1
	if k < 0 {
		return laneKey{}, false
	}
	return laneKey{tape, list[k].lane}, true
}

// when returns the time of the event at a position.
func (f *finder) when(i int, at laneKey) moment {
	t := f.s.tapes[at.tape]
	host := t.Lanes[at.lane].Host
	h := t.Host(host)
	offset := t.shift(host) - h.Wall(0)
	return moment{f.o.Wall(i) + offset, f.o.Exit(i) + offset}
}

// clocks says what is known of the clocks.
func (s *Scene) clocks() []string {
	list := []string{}
	if s.order == nil || len(s.order.Hosts()) < 2 {
		return list
	}
	for i, k := range s.order.Skews() {
		if int(s.order.Machine(uint32(i))) != i {
			continue // another recording of the same clock
		}
		name := s.order.Hosts()[i].Host
		switch {
		case k.Drift:
			list = append(list, fmt.Sprintf("%s: no difference of its clock fits all messages", name))
		case i == 0 && k.Min == 0 && k.Max == 0: // what the others are compared with
		case k.Bounded():
			ahead, by := "ahead", k.Min+(k.Max-k.Min)/2
			if by < 0 {
				ahead, by = "behind", -by
			}
			list = append(list, fmt.Sprintf("%s: its clock is %s by %s, give or take %s; the picture puts it right",
				name, ahead, report.Duration(by), report.Duration((k.Max-k.Min+1)/2)))
		default:
			list = append(list, fmt.Sprintf("%s: messages do not tell how its clock differs", name))
		}
	}
	return list
}
