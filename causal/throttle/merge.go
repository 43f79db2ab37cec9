// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
)

// Result is what the runs of an application say together.
type Result struct {
	Evidence causal.Evidence // for the tape of the recorded run
	Nodes    []NodeResult    // by name
	Found    int             // dependencies between calls, before any reduction
	// Refuted are such that a run contradicted: there, the one call began before the
	// other had ended.
	Refuted  int
	Barriers []Barrier
	Differ   []Difference // where runs of the application differed
	GaveUp   []string     // holds that came to nothing, and why
}

// NodeResult is what is known of a node.
type NodeResult struct {
	Name      string `json:"name"`
	Comm      string `json:"comm"`
	PID       uint32 `json:"pid"`
	TID       uint32 `json:"tid"`
	Calls     int    `json:"calls"`  // in the recorded run
	Agreed    int    `json:"agreed"` // of these, such that all runs made
	Period    int    `json:"period"` // with which it was held; 0: it was not
	Holds     int    `json:"holds"`
	HeldNS    int64  `json:"held_ns"`
	WaitedFor int    `json:"waited_for"` // dependencies on its calls
	Waits     int    `json:"waits"`      // dependencies of its calls on others'
}

// Difference is the first call that a node made otherwise in one run than in the recorded
// one. What came after it proves nothing.
type Difference struct {
	Node, Run string // Run says which, for the user
	Call      int
	Want, Got string
}

func (d *Difference) String() string {
	return fmt.Sprintf("node %s, call %d: %s when it was recorded, %s %s", d.Node, d.Call, d.Want, d.Got, d.Run)
}

// Barrier is a place at which every node waits for every other: the calls after it.
type Barrier struct {
	Held  string         // node by which it was found
	After int            // its call
	Next  map[string]int // the others' calls
}

// recorded is a call as the tape has it.
type recorded struct {
	Call
	seq uint64
}

// recordedNode is a node as the tape has it.
type recordedNode struct {
	name, comm string
	pid, tid   uint32
	calls      []recorded
}

// readTape finds the nodes in a tape.
func readTape(events iter.Seq2[*event.Event, error], scope *Scope, hosts []string) (map[string]*recordedNode, error) {
	isIO := map[event.Op]bool{}
	for _, op := range ops {
		isIO[op] = true
	}
	families, nodes := map[uint32]processTree{}, map[string]*recordedNode{}
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		f := families[ev.Host]
		if f == nil {
			f = processTree{}
			families[ev.Host] = f
		}
		switch ev.Kind {
		case event.LossMark:
			return nil, errors.New("events were lost: the calls of the recorded run cannot be counted")
		case event.Forked:
			f.onFork(ev.TID, ev.Child, ev.Fork().IsThread())
		case event.Call:
			if !isIO[ev.Op] || ev.Flags&(event.Interrupted|event.Compat) != 0 || f[ev.TID] == nil && len(f) > 0 {
				continue
			}
			file := ev.FileArg(0)
			if file == nil || !scope.counts(file.Mode, strings.TrimSuffix(file.Path, " (deleted)")) {
				continue
			}
			k := f[ev.TID]
			if k == nil {
				k = f.first(ev.TID)
			}
			name := k.name
			if int(ev.Host) < len(hosts) {
				name = OnHost(hosts[ev.Host], name)
			}
			n := nodes[name]
			if n == nil {
				n = &recordedNode{name: name, comm: ev.Comm, pid: ev.PID, tid: ev.TID}
				nodes[name] = n
			}
			n.calls = append(n.calls, recorded{Call{Op: ev.Op.String(), Shape: shape(ev.Op, &ev.Args), File: file.Path,
				Enter: ev.Enter, Exit: ev.Exit}, ev.Seq})
		}
	}
	return nodes, nil
}

// merger joins runs.
type merger struct {
	nodes map[string]*recordedNode
	runs  []*Run
	same  []map[string]int // of each run: how many calls of a node are as recorded
	deps  map[place][]place
	spins map[place]bool // before this call the node runs while it waits
	res   *Result
}

// Merge says what runs of an application say of a recorded one, whose events these are.
// Alone is whether only they count, and what the tape itself proves does not. The first run
// is one in which nobody was held. Hosts are the names of the tape's hosts, in its order, if
// there are several.
func Merge(events iter.Seq2[*event.Event, error], scope *Scope, hosts []string, runs []*Run, alone bool) (*Result,
	error) {
	nodes, err := readTape(events, scope, hosts)
	if err != nil {
		return nil, err
	}
	m := &merger{nodes: nodes, runs: runs, deps: map[place][]place{}, spins: map[place]bool{}, res: &Result{}}
	m.res.Evidence.Alone = alone
	for _, name := range slices.SortedFunc(maps.Keys(nodes), byName) {
		n := nodes[name]
		m.res.Nodes = append(m.res.Nodes,
			NodeResult{Name: name, Comm: n.comm, PID: n.pid, TID: n.tid, Calls: len(n.calls), Agreed: len(n.calls)})
	}
	for _, r := range runs {
		m.compare(r)
	}
	for i, r := range runs {
		m.waits(i, r)
	}
	m.gaps()
	return m.res, nil
}

// name says which run it is.
func (r *Run) name() string {
	switch {
	case r.Held == "":
		return "when nobody was held"
	case r.Period == 1:
		return fmt.Sprintf("when node %s was held", r.Held)
	}
	return fmt.Sprintf("when node %s was held at each %dth call", r.Held, r.Period)
}

// compare finds out how far a run is like the recorded one.
func (m *merger) compare(r *Run) {
	same := map[string]int{}
	for i := range m.res.Nodes {
		node := &m.res.Nodes[i]
		want, got := m.nodes[node.Name].calls, []Call(nil)
		if n := r.node(node.Name); n != nil {
			got = n.Calls
		}
		n := 0
		for n < len(want) && n < len(got) && got[n].same(&want[n].Call) {
			n++
		}
		same[node.Name] = n
		if n == len(want) && n == len(got) || n == len(got) && r.Abandoned != "" {
			continue
		}
		d := Difference{Node: node.Name, Run: r.name(), Call: n, Want: "none", Got: "none"}
		if n < len(want) {
			d.Want = want[n].String()
		}
		if n < len(got) {
			d.Got = got[n].String()
		}
		m.res.Differ = append(m.res.Differ, d)
		node.Agreed = min(node.Agreed, n)
	}
	for _, n := range r.Nodes {
		if m.nodes[n.Name] == nil {
			m.res.Differ = append(m.res.Differ, Difference{n.Name, r.name(), 0, "no such node", n.Calls[0].String()})
		}
	}
	m.same = append(m.same, same)
}

// place is a call: of a node, which.
type place struct {
	node string
	call int
}

// waits takes what the holds of a run show: what stuck nodes do next waits for the call that
// was held. Of several such calls the last counts.
func (m *merger) waits(i int, r *Run) {
	node := m.result(r.Held)
	if node == nil {
		return
	}
	node.Period = r.Period
	if r.Abandoned != "" {
		m.res.GaveUp = append(m.res.GaveUp,
			fmt.Sprintf("the run in which node %s was held was ended: %s", r.Held, r.Abandoned))
	}
	last := map[place]int{}
	for _, h := range r.Holds {
		if h.Call >= m.same[i][r.Held] {
			break
		}
		node.Holds++
		node.HeldNS += h.Till - h.From
		if h.Until != "" {
			m.res.GaveUp = append(m.res.GaveUp,
				fmt.Sprintf("node %s was held at call %d for %v, and %s neither ended nor waited", r.Held, h.Call,
					time.Duration(h.Till-h.From).Round(time.Millisecond), h.Until))
			continue
		}
		for name, next := range h.Next {
			if next >= m.same[i][name] {
				continue
			}
			at := place{name, next}
			last[at] = h.Call
			if r.node(name).Calls[next].CPU > (h.Till-h.From)/2 {
				m.spins[at] = true
			}
		}
		m.barrier(i, r, &h)
	}
	for _, at := range slices.SortedFunc(maps.Keys(last),
		func(a, b place) int { return cmp.Or(byName(a.node, b.node), cmp.Compare(a.call, b.call)) }) {
		m.wait(at, place{r.Held, last[at]})
	}
}

func (m *merger) result(name string) *NodeResult {
	i, ok := slices.BinarySearchFunc(m.res.Nodes, name,
		func(n NodeResult, name string) int { return byName(n.Name, name) })
	if !ok {
		return nil
	}
	return &m.res.Nodes[i]
}

// shortLag is what tracing and waking up take: no computing.
const shortLag = 100 * time.Microsecond

// wait adds a dependency that a run showed, unless one contradicts it.
func (m *merger) wait(to, from place) {
	if m.refuted(to, from) {
		m.res.Refuted++
		return
	}
	m.res.Found++
	m.result(from.node).WaitedFor++
	m.result(to.node).Waits++
	m.deps[to] = append(m.deps[to], from)
	lag := m.lag(to, from)
	if lag < shortLag {
		lag = 0
	}
	m.res.Evidence.Waits = append(m.res.Evidence.Waits,
		causal.Found{Event: m.nodes[to.node].calls[to.call].seq, For: m.nodes[from.node].calls[from.call].seq,
			Lag: lag})
}

// lag returns how much later a call began than another one was done, at least: what both
// nodes computed in between.
func (m *merger) lag(to, from place) time.Duration {
	least := m.nodes[to.node].calls[to.call].Enter - m.nodes[from.node].calls[from.call].Exit
	m.each(to, func(r *Run, t *Call) {
		if f := m.call(r, from); f != nil && f.Exit > 0 {
			lag := t.Enter - f.Exit
			if lag < 0 && lag >= -r.Slack && hostOf(to.node) != hostOf(from.node) {
				lag = 0 // their clocks are no better
			}
			least = min(least, lag)
		}
	})
	return time.Duration(least)
}

func hostOf(node string) string {
	host, _ := HostOf(node)
	return host
}

// each calls f for all runs that made a call.
func (m *merger) each(p place, f func(r *Run, c *Call)) {
	for i, r := range m.runs {
		if p.call >= 0 && p.call < m.same[i][p.node] {
			f(r, &r.node(p.node).Calls[p.call])
		}
	}
}

// call returns a call as a run made it, nil if it did not.
func (m *merger) call(r *Run, p place) *Call {
	i := slices.Index(m.runs, r)
	if p.call < 0 || p.call >= m.same[i][p.node] {
		return nil
	}
	return &r.node(p.node).Calls[p.call]
}

// refuted reports whether in one of the runs the second call began before the first had
// ended.
func (m *merger) refuted(to, from place) bool {
	return m.nodes[to.node].calls[to.call].seq < m.nodes[from.node].calls[from.call].seq || m.lag(to, from) < 0
}

// barrier notes a hold at which every other node was stuck, if no run contradicts that all
// wait for all.
func (m *merger) barrier(i int, r *Run, h *Hold) {
	const fewest = 2 // other nodes
	if len(h.Next) < fewest || len(h.Next) != len(m.res.Nodes)-1 {
		return
	}
	places := []place{{r.Held, h.Call + 1}}
	for name, next := range h.Next {
		places = append(places, place{name, next})
	}
	for _, p := range places { // each has a call before it, which the others wait for
		if p.call == 0 || p.call >= m.same[i][p.node] {
			return
		}
	}
	for _, to := range places {
		for _, from := range places {
			if from.node != to.node && m.refuted(to, place{from.node, from.call - 1}) {
				return
			}
		}
	}
	m.res.Barriers = append(m.res.Barriers, Barrier{Held: r.Held, After: h.Call, Next: h.Next})
}

// gap bounds what a node did before a call by what it did where it need not wait: when
// nobody was held, or it was itself, so that all others were ahead.
//
// Even then a node that spins may wait for what others do because of its own last call. So
// of such a gap only that counts which came after all that the call waits for.
func (m *merger) gap(p place) causal.Gap {
	g := causal.Gap{Event: m.nodes[p.node].calls[p.call].seq, Compute: -1, Idle: -1}
	after := time.Duration(-1)
	m.each(p, func(r *Run, c *Call) {
		if r.Held != "" && r.Held != p.node {
			return
		}
		if g.Compute < 0 || c.CPU < int64(g.Compute) {
			g.Compute = time.Duration(c.CPU)
		}
		if g.Idle < 0 || c.Idle < int64(g.Idle) {
			g.Idle = time.Duration(c.Idle)
		}
		before := m.call(r, place{p.node, p.call - 1})
		if before == nil {
			return
		}
		began := before.Exit
		for _, d := range m.deps[p] {
			if f := m.call(r, d); f != nil {
				began = max(began, f.Exit)
			}
		}
		at := c.Enter
		if r.Held == p.node {
			at = min(at, m.begun(r, p.call))
		}
		after = max(after, time.Duration(at-began))
	})
	if m.spins[p] && after >= 0 {
		g.Compute = min(g.Compute, after)
	}
	return g
}

// begun returns when a call of the held node was to begin.
func (m *merger) begun(r *Run, call int) int64 {
	i, held := slices.BinarySearchFunc(r.Holds, call, func(h Hold, call int) int { return cmp.Compare(h.Call, call) })
	if held {
		return r.Holds[i].From
	}
	return r.node(r.Held).Calls[call].Enter
}

func (m *merger) gaps() {
	for name, n := range m.nodes {
		for k := range n.calls {
			m.res.Evidence.Gaps = append(m.res.Evidence.Gaps, m.gap(place{name, k}))
		}
	}
	slices.SortFunc(m.res.Evidence.Gaps, func(a, b causal.Gap) int { return cmp.Compare(a.Event, b.Event) })
}
