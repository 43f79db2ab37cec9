package replay

import (
	"cmp"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/trace"
)

// Processes are told apart by the event that made them, and else by their number: numbers
// are used again.
type processID uint64

// processes follows which process a thread belongs to.
type processes map[uint32]processID

func (p processes) of(ev *event.Event) processID {
	id, ok := p[ev.TID]
	if !ok {
		id = processID(1<<63 | uint64(ev.PID))
		p[ev.TID] = id
	}
	return id
}

func (p processes) forked(ev *event.Event) {
	if parent := p.of(ev); ev.Args[0]&event.ShareThread != 0 {
		p[ev.Child] = parent
	} else {
		p[ev.Child] = processID(ev.Seq + 1)
	}
}

// division says which member of a team makes the calls of a process.
type division struct {
	processes
	part map[processID]int
}

// divide gives each process of a tape to one of the members: to that which has the name of
// its host, if the tape has several and there is one, and of all others those with the most
// calls on files first, each to the member that has the fewest. Processes that share an
// open file stay together, for its position is one.
func divide(t *trace.Tape, layout eventsource.Layout, members []string) (*division, error) {
	numbers, homes := layout.Numbers(), map[processID]int{}
	procs, sets := processes{}, map[processID]processID{}
	var root func(id processID) processID
	root = func(id processID) processID {
		up, ok := sets[id]
		if !ok || up == id {
			sets[id] = id
			return id
		}
		top := root(up)
		sets[id] = top
		return top
	}
	opens, calls := map[event.OpenID]processID{}, map[processID]int{}
	var list []processID // in the order of their first events
	for ev, err := range t.Events() {
		if err != nil {
			return nil, err
		}
		numbers.Event(ev)
		if ev.Kind == event.LossMark {
			continue
		}
		id := procs.of(ev)
		if _, known := sets[id]; !known {
			list = append(list, root(id))
			if home := slices.Index(members, layout.Host(ev.Host).Name); len(layout) > 1 && home >= 0 {
				homes[id] = home
			}
		}
		if ev.Kind == event.Forked {
			procs.forked(ev)
		}
		for i := range ev.Files {
			f := &ev.Files[i]
			if kind := effect.TypeOf(f.Mode); f.Open == 0 || f.Known && kind != 'f' && kind != 'd' || effect.Virtual(f.Path) {
				continue
			}
			if other, ok := opens[f.Open]; ok {
				sets[root(id)] = root(other)
			} else {
				opens[f.Open] = id
			}
			calls[id]++
		}
	}
	weight := map[processID]int{}
	var tops []processID
	for _, id := range list {
		top := root(id)
		if _, ok := weight[top]; !ok {
			tops = append(tops, top)
		}
		weight[top] += calls[id]
	}
	slices.SortStableFunc(tops, func(a, b processID) int { return cmp.Compare(weight[b], weight[a]) })
	load, chosen := make([]int, len(members)), map[processID]int{}
	for _, id := range list {
		if home, ok := homes[id]; ok {
			if _, taken := chosen[root(id)]; !taken {
				chosen[root(id)] = home
				load[home] += weight[root(id)]
			}
		}
	}
	for _, top := range tops {
		if _, ok := chosen[top]; ok {
			continue
		}
		least := 0
		for i := range load {
			if load[i] < load[least] {
				least = i
			}
		}
		chosen[top] = least
		load[least] += weight[top]
	}
	d := &division{processes{}, map[processID]int{}}
	for _, id := range list {
		d.part[id] = chosen[root(id)]
	}
	return d, nil
}

// member returns the part of an event's thread.
func (d *division) member(ev *event.Event) int {
	if d == nil {
		return 0
	}
	return d.part[d.of(ev)]
}

// child returns the part of a new thread.
func (d *division) child(ev *event.Event) int {
	if d == nil {
		return 0
	}
	d.forked(ev)
	return d.part[d.processes[ev.Child]]
}
