// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/trace"
)

// processID identifies a process by the event that made it, and else by its number: numbers
// are used again.
type processID uint64

// processes follows which process a thread belongs to.
type processes map[uint32]processID

func (p processes) process(ev *event.Event) processID {
	id, ok := p[ev.TID]
	if !ok {
		id = processID(1<<63 | uint64(ev.PID))
		p[ev.TID] = id
	}
	return id
}

func (p processes) forked(ev *event.Event) {
	if parent := p.process(ev); ev.Fork().IsThread() {
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

// divide gives each process of a tape to one of the members: to the member that has the name
// of its host, if the tape has several hosts and there is one, and of all others the process
// with the most calls on files first, each to the member that has the fewest. Processes that
// share an open file stay together, because its position is one.
func divide(t *trace.Tape, layout eventsource.Layout, members []string) (*division, error) {
	g, err := groupProcesses(t, layout, members)
	if err != nil {
		return nil, err
	}
	chosen := g.assign(len(members))
	d := &division{processes{}, map[processID]int{}}
	for _, id := range g.list {
		d.part[id] = chosen[g.root(id)]
	}
	return d, nil
}

// groups are the processes of a tape in sets of those that share open files.
type groups struct {
	list  []processID                // in the order of their first events
	sets  map[processID]processID    // union-find
	opens map[event.OpenID]processID // of each open file, a process that uses it
	calls map[processID]int          // on files
	homes map[processID]int          // members on the processes' hosts
}

// groupProcesses reads the processes of a tape.
func groupProcesses(t *trace.Tape, layout eventsource.Layout, members []string) (*groups, error) {
	g := &groups{
		sets: map[processID]processID{}, opens: map[event.OpenID]processID{},
		calls: map[processID]int{}, homes: map[processID]int{},
	}
	numbers, procs := layout.Numbers(), processes{}
	for ev, err := range t.Events() {
		if err != nil {
			return nil, err
		}
		numbers.Event(ev)
		if ev.Kind == event.LossMark {
			continue
		}
		id := procs.process(ev)
		if _, known := g.sets[id]; !known {
			g.list = append(g.list, g.root(id))
			if home := slices.Index(members, layout.Host(ev.Host).Name); len(layout) > 1 && home >= 0 {
				g.homes[id] = home
			}
		}
		if ev.Kind == event.Forked {
			procs.forked(ev)
		}
		g.noteFiles(id, ev)
	}
	return g, nil
}

// noteFiles joins a process with those that use the files of its event.
func (g *groups) noteFiles(id processID, ev *event.Event) {
	for i := range ev.Files {
		f := &ev.Files[i]
		if kind := effect.TypeOf(f.Mode); f.Known && kind != 'f' && kind != 'd' {
			continue
		}
		if f.Open == 0 || effect.Virtual(f.Path) {
			continue
		}
		if other, ok := g.opens[f.Open]; ok {
			g.sets[g.root(id)] = g.root(other)
		} else {
			g.opens[f.Open] = id
		}
		g.calls[id]++
	}
}

// root returns the process that stands for a process's set.
func (g *groups) root(id processID) processID {
	up, ok := g.sets[id]
	if !ok || up == id {
		g.sets[id] = id
		return id
	}
	top := g.root(up)
	g.sets[id] = top
	return top
}

// assign returns the member for each set, by its root.
func (g *groups) assign(members int) map[processID]int {
	weight := map[processID]int{}
	var roots []processID
	for _, id := range g.list {
		top := g.root(id)
		if _, ok := weight[top]; !ok {
			roots = append(roots, top)
		}
		weight[top] += g.calls[id]
	}
	slices.SortStableFunc(roots, func(a, b processID) int { return cmp.Compare(weight[b], weight[a]) })
	load, chosen := make([]int, members), map[processID]int{}
	for _, id := range g.list {
		home, ok := g.homes[id]
		if !ok {
			continue
		}
		if _, taken := chosen[g.root(id)]; !taken {
			chosen[g.root(id)] = home
			load[home] += weight[g.root(id)]
		}
	}
	for _, top := range roots {
		if _, ok := chosen[top]; ok {
			continue
		}
		least := slices.Index(load, slices.Min(load))
		chosen[top] = least
		load[least] += weight[top]
	}
	return chosen
}

// member returns the part of an event's thread.
func (d *division) member(ev *event.Event) int {
	if d == nil {
		return 0
	}
	return d.part[d.process(ev)]
}

// child returns the part of a new thread.
func (d *division) child(ev *event.Event) int {
	if d == nil {
		return 0
	}
	d.forked(ev)
	return d.part[d.processes[ev.Child]]
}
