// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/causal/happens"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Scene is what there is to see of some tapes. It is safe for concurrent use.
type Scene struct {
	tapes []*tape
	o     Options
	rows  []Row
	rowOf []rowState
	from  int64 // ns, in the picture's time
	to    int64

	mu     sync.RWMutex // of what Order finds
	order  *happens.Order
	arrows *arrows
	places []Place
	state  string

	way way
}

// Options for Open. Zero values are the defaults.
type Options struct {
	// Filter reads a filter for the events of a tape, for Find. It may be nil.
	Filter func(t *trace.Tape, text string) (accepts func(ev *event.Event) bool, err error)
	// InMemory makes the index in memory, and leaves the tapes as they are.
	InMemory bool
	// Progress is called now and then, with events. It may be nil.
	Progress func(done, total uint64)
}

// Place is a moment to show: where events were lost, or a note.
type Place struct {
	AtNS int64  `json:"at_ns"`
	Tape int    `json:"tape"`
	Seq  uint64 `json:"seq"`
	Note string `json:"note,omitempty"`
	Lost int64  `json:"lost,omitempty"` // events
}

// Open prepares tapes, which stay their caller's. It takes a pass over the events of each
// tape that has no index yet.
func Open(ctx context.Context, tapes []*trace.Tape, o *Options) (_ *Scene, err error) {
	s := &Scene{state: "not asked for"}
	if o != nil {
		s.o = *o
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	total, done := uint64(0), uint64(0)
	for _, t := range tapes {
		total += t.Manifest().Counts.Events
	}
	for _, t := range tapes {
		progress := func(n uint64) {
			if s.o.Progress != nil {
				s.o.Progress(done+n, total)
			}
		}
		open := openTape
		if s.o.InMemory {
			open = inMemory
		}
		x, err := open(ctx, t, progress)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name(), err)
		}
		s.tapes = append(s.tapes, x)
		done += t.Manifest().Counts.Events
	}
	s.align(nil)
	s.makeRows()
	return s, nil
}

// Close releases what Open opened.
func (s *Scene) Close() error {
	s.way.close()
	var errs []error
	for _, t := range s.tapes {
		errs = append(errs, t.close())
	}
	return errors.Join(errs...)
}

// align puts the hosts' times beside each other: by their wall clocks, and what messages
// say of the differences of those. What has no wall clock begins with the others.
func (s *Scene) align(skews []happens.Skew) {
	type span struct{ from, to int64 }
	var hosts []trace.Host
	var firsts []happens.First
	for _, t := range s.tapes {
		for h := range max(len(t.Manifest().Hosts), 1) {
			hosts = append(hosts, *t.Host(uint32(h)))
			ns, ok := t.first(uint32(h))
			firsts = append(firsts, happens.First{NS: ns, Known: ok})
		}
	}
	shifts := happens.Align(hosts, firsts, skews)
	for _, t := range s.tapes {
		t.hosts = t.hosts[:0]
		for range max(len(t.Manifest().Hosts), 1) {
			t.hosts = append(t.hosts, hostState{shift: shifts[0], row: -1})
			shifts = shifts[1:]
		}
	}
	var all *span
	s.places = nil
	for k, t := range s.tapes {
		for i := range t.Lanes {
			if m := t.sum(i); m.N > 0 {
				x := span{m.From + t.shift(t.Lanes[i].Host), m.To + t.shift(t.Lanes[i].Host)}
				if all == nil {
					all = &x
				}
				all.from, all.to = min(all.from, x.from), max(all.to, x.to)
			}
		}
		for _, p := range t.Places {
			s.places = append(s.places, Place{p.At + t.shift(p.Host), k, p.Seq, p.Text, p.Lost})
		}
	}
	if all != nil {
		s.from, s.to = all.from, max(all.to, all.from+1)
	} else {
		s.to = 1
	}
}

// first returns when a host's first span began.
func (t *tape) first(host uint32) (ns int64, ok bool) {
	for i := range t.Lanes {
		if m := t.sum(i); m.N > 0 && t.Lanes[i].Host == host && (!ok || m.From < ns) {
			ns, ok = m.From, true
		}
	}
	return ns, ok
}

// shift returns what is added to a host's times.
func (t *tape) shift(host uint32) int64 {
	if int(host) < len(t.hosts) {
		return t.hosts[host].shift
	}
	return 0
}

// Row is a row of the picture: a host, a process, or a thread of a process that has
// several. Rows stand depth first, children behind their parents.
type Row struct {
	Parent int    `json:"parent"` // -1: none
	Depth  int    `json:"depth"`
	Kind   string `json:"kind"` // host, process or thread
	Name   string `json:"name"`
	Tape   int    `json:"tape"`
	PID    uint32 `json:"pid,omitempty"`
	TID    uint32 `json:"tid,omitempty"`
	FromNS int64  `json:"from_ns"` // of it and all below
	ToNS   int64  `json:"to_ns"`
	Calls  uint64 `json:"calls"` // of itself
	Below  int    `json:"below"` // rows
}

// rowState is what else is known of a row.
type rowState struct {
	lanes []int // of the tape: its own
}

// MaxRows limits the rows that are listed. Threads have none of their own then.
const MaxRows = 32 << 10

// process is a process while rows are made.
type process struct {
	tape     int
	host     uint32
	pid      uint32
	lanes    []int
	main     bool // its first thread was seen
	children []*process
}

// hostName names a host of a tape, with the tape's name if another one is of a host of that
// name.
func (s *Scene) hostName(tape, host int) string {
	t := s.tapes[tape]
	name := t.Host(uint32(host)).Host
	if name == "" {
		return t.Name()
	}
	for k, other := range s.tapes {
		for h := range other.hosts {
			if k != tape && other.Host(uint32(h)).Host == name {
				return name + ": " + filepath.Base(t.Name())
			}
		}
	}
	return name
}

// makeRows makes the tree of hosts, processes and threads.
func (s *Scene) makeRows() {
	hosts := 0
	for _, t := range s.tapes {
		hosts += max(len(t.hosts), 1)
	}
	threads := 0
	for _, t := range s.tapes {
		threads += len(t.Lanes)
	}
	for k, t := range s.tapes {
		t.rows = make([]int, len(t.Lanes))
		roots := t.processes(k)
		for h := range t.hosts {
			parent, depth := -1, 0
			var own []*process
			for _, p := range roots {
				if int(p.host) == h || int(p.host) >= len(t.hosts) && h == 0 {
					own = append(own, p)
				}
			}
			if hosts > 1 && len(own) > 0 {
				parent, depth = s.addRow(Row{Parent: -1, Kind: "host", Name: s.hostName(k, h), Tape: k}, nil), 1
				t.hosts[h].row = parent
			}
			s.addProcesses(t, own, parent, depth, threads+hosts < MaxRows/2)
			if parent >= 0 {
				s.rows[parent].Below = len(s.rows) - parent - 1
			}
		}
	}
	s.sumRows()
}

// processes groups a tape's lanes.
func (t *tape) processes(k int) (roots []*process) {
	type key struct{ host, pid uint32 }
	now := map[key]*process{}
	for i := range t.Lanes {
		l := &t.Lanes[i]
		p := now[key{l.Host, l.PID}]
		if p == nil || l.TID == l.PID && p.main {
			p = &process{tape: k, host: l.Host, pid: l.PID}
			if parent := now[key{l.Host, l.PPID}]; parent != nil && l.PPID != l.PID {
				parent.children = append(parent.children, p)
			} else {
				roots = append(roots, p)
			}
			now[key{l.Host, l.PID}] = p
		}
		p.main = p.main || l.TID == l.PID
		p.lanes = append(p.lanes, i)
	}
	return roots
}

// addProcesses adds rows of processes with all below them. It keeps a stack of its own: a
// hostile tape may have a chain of any depth.
func (s *Scene) addProcesses(t *tape, roots []*process, parent, depth int, threads bool) {
	type item struct {
		p             *process
		parent, depth int
		done          int // the row whose children are over
	}
	var stack []item
	push := func(list []*process, parent, depth int) {
		for i := len(list) - 1; i >= 0; i-- {
			stack = append(stack, item{list[i], parent, depth, -1})
		}
	}
	push(roots, parent, depth)
	for len(stack) > 0 {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if x.done >= 0 {
			s.rows[x.done].Below = len(s.rows) - x.done - 1
			continue
		}
		p := x.p
		comm := ""
		for _, l := range p.lanes {
			if comm == "" || t.Lanes[l].TID == p.pid {
				comm = cmp.Or(t.Lanes[l].Comm, comm)
			}
		}
		name := fmt.Sprintf("%s %d", cmp.Or(comm, "process"), p.pid)
		if t.Others && p.lanes[0] == maxLanes {
			name = "(other threads)"
		}
		row := s.addRow(Row{Parent: x.parent, Depth: x.depth, Kind: "process", Name: name, Tape: p.tape, PID: p.pid},
			p.lanes)
		for _, l := range p.lanes {
			t.rows[l] = row
		}
		if len(p.lanes) > 1 && threads {
			for _, l := range p.lanes {
				tid := t.Lanes[l].TID
				t.rows[l] = s.addRow(Row{Parent: row, Depth: x.depth + 1, Kind: "thread",
					Name: fmt.Sprintf("%s %d", cmp.Or(t.Lanes[l].Comm, "thread"), tid), Tape: p.tape,
					PID: p.pid, TID: tid}, []int{l})
			}
		}
		stack = append(stack, item{done: row})
		push(p.children, row, x.depth+1)
	}
}

func (s *Scene) addRow(r Row, lanes []int) int {
	s.rows, s.rowOf = append(s.rows, r), append(s.rowOf, rowState{lanes: lanes})
	return len(s.rows) - 1
}

// sumRows says when rows begin and end, and how many calls they have.
func (s *Scene) sumRows() {
	for i := len(s.rows) - 1; i >= 0; i-- {
		r := &s.rows[i]
		t, some := s.tapes[r.Tape], false
		widen := func(from, to int64) {
			if !some {
				r.FromNS, r.ToNS, some = from, to, true
			}
			r.FromNS, r.ToNS = min(r.FromNS, from), max(r.ToNS, to)
		}
		r.Calls = 0
		for _, l := range s.rowOf[i].lanes {
			if m := t.sum(l); m.N > 0 {
				shift := t.shift(t.Lanes[l].Host)
				widen(m.From+shift, m.To+shift)
				r.Calls += m.N
			}
		}
		for k := i + 1; k <= i+r.Below; k += s.rows[k].Below + 1 {
			widen(s.rows[k].FromNS, s.rows[k].ToNS)
		}
	}
}

// About says what a Scene is of.
type About struct {
	Title   string      `json:"title"`
	FromNS  int64       `json:"from_ns"`
	ToNS    int64       `json:"to_ns"`
	Tapes   []TapeAbout `json:"tapes"`
	Rows    []Row       `json:"rows"`
	Kinds   []string    `json:"kinds"`   // of marks, by their number
	Reasons []string    `json:"reasons"` // of arrows, by their number
	Places  []Place     `json:"places"`
	Order   string      `json:"order"`  // "" when arrows are there; else why not, or how far
	Clocks  []string    `json:"clocks"` // what is known of the hosts' clocks
}

// TapeAbout describes a tape.
type TapeAbout struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Hosts   []string `json:"hosts"`
	Events  uint64   `json:"events"`
	Lost    uint64   `json:"lost"`
	Damaged uint64   `json:"damaged_blocks"`
}

// About returns what the Scene is of.
func (s *Scene) About() *About {
	s.mu.RLock()
	defer s.mu.RUnlock()
	a := &About{FromNS: s.from, ToNS: s.to, Tapes: []TapeAbout{}, Rows: append([]Row{}, s.rows...),
		Places: append([]Place{}, s.places...), Order: s.state, Clocks: s.clocks()}
	var names []string
	for _, t := range s.tapes {
		x := TapeAbout{Name: t.Name(), Command: append([]string{}, t.Host(0).Command...), Hosts: []string{},
			Events: t.Manifest().Counts.Events, Damaged: t.Damaged}
		for i := range t.Manifest().Hosts {
			x.Hosts = append(x.Hosts, t.Host(uint32(i)).Host)
		}
		for _, l := range t.Manifest().Losses {
			x.Lost += l.Records
		}
		a.Tapes = append(a.Tapes, x)
		names = append(names, x.Name)
	}
	for k := range report.Works {
		a.Kinds = append(a.Kinds, k.String())
	}
	a.Title, a.Reasons = strings.Join(names, ", "), reasonNames()
	return a
}
