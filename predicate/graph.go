// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"fmt"
	"strings"

	"github.com/iotape/iotape/event"
)

// Options say what is known of the events. Nil is nothing.
type Options struct {
	// Hosts are those of Event.Host. Without them filters cannot ask for hosts and for
	// wall-clock times.
	Hosts []Host
	// StartNS is when the recording began: in ns since 1970, or on the clock of the
	// events if there are no Hosts.
	StartNS int64
}

// Host is a machine that events are of.
type Host struct {
	Name   string
	Arch   event.Arch
	WallNS int64 // what to add to times of events to get ns since 1970
}

// Graph is a compiled filter. It is immutable.
type Graph struct {
	expr     *Expr
	formulas *formulas
	root     ref
	steps    []step
	entry    int32
	hosts    []Host
	startNS  int64
	roots    []uint32 // of "descendant of"
	follows  follows
	warnings []Warning
}

// The last nodes of a graph.
const (
	refused  int32 = -2
	accepted int32 = -1
)

// step is a node of the graph.
type step struct {
	code    testCode
	field   fieldID
	simple  bool // one interval: lo and hi
	cached  bool // results are remembered by the text
	yes, no int32
	lo, hi  int64
	ops     *opSet // of the test
	test    *test
	number  int32 // of the test
}

// follows says what of earlier events a filter needs.
type follows struct{ kin, programs, sockets, facts bool }

// Compile checks an expression and makes a graph of it. The error, if any, is an *Error.
func Compile(x *Expr, o *Options) (*Graph, error) {
	if o == nil {
		o = &Options{}
	}
	c := &checker{x: x, o: o, f: newFormulas()}
	root, err := c.meaning(x.root)
	if err != nil {
		return nil, err
	}
	g := &Graph{expr: x, formulas: &c.f, root: root, hosts: o.Hosts, startNS: o.StartNS, warnings: c.warnings}
	b := builder{g: g, done: map[edge]int32{}, steps: map[edge]int32{}}
	g.entry = b.build(root, accepted, refused)
	for i := range g.steps {
		t := g.steps[i].test
		switch {
		case t.code == testDescent:
			g.follows.kin = true
		case t.field.id == fieldExe:
			g.follows.programs = true
		case t.field.id >= fieldCgroup && t.field.id <= fieldUnit:
			g.follows.facts = true
		case t.field.id >= fieldAddr && t.field.id <= fieldPeerPort:
			g.follows.sockets = true
		}
	}
	if len(g.roots) > maxRoots {
		return nil, &Error{Source: x.src,
			Message: fmt.Sprintf("the filter asks for descendants of %d processes, at most %d", len(g.roots), maxRoots)}
	}
	switch root {
	case never:
		g.warnings = append(g.warnings, Warning{0, len(x.src), "the filter is never true"})
	case always:
		if _, ok := x.root.(*constant); !ok {
			g.warnings = append(g.warnings, Warning{0, len(x.src), "the filter is always true"})
		}
	}
	return g, nil
}

// New is Parse and Compile.
func New(src string, o *Options) (*Graph, error) {
	x, err := Parse(src)
	if err != nil {
		return nil, err
	}
	return Compile(x, o)
}

// Expr returns what the graph was made of.
func (g *Graph) Expr() *Expr { return g.expr }

// Warnings lists what was hardly meant, in the order of the text.
func (g *Graph) Warnings() []Warning { return g.warnings }

// Never reports whether the filter accepts nothing, whatever the events are.
func (g *Graph) Never() bool { return g.root == never }

// Always reports whether the filter accepts every event.
func (g *Graph) Always() bool { return g.root == always }

// Follows reports whether a Matcher has to see all events of a trace, in their order,
// and not only those that are asked for: whether the filter has "descendant of", exe,
// cgroup, container, pod, unit, addr or port.
func (g *Graph) Follows() bool { return g.follows != follows{} }

// Simplified returns the filter as it is evaluated, in one line.
func (g *Graph) Simplified() string { return g.formulas.String(g.root) }

// builder makes steps of formulas.
type builder struct {
	g     *Graph
	done  map[edge]int32 // steps of formulas
	steps map[edge]int32 // steps of tests
}

// edge is a formula, or a test, with where to go from it.
type edge struct {
	r       ref
	yes, no int32
}

// build returns the step at which the evaluation of a formula begins. It goes on at yes
// or no.
func (b *builder) build(r ref, yes, no int32) int32 {
	k := &b.g.formulas.list[r]
	switch {
	case r == always:
		return yes
	case r == never:
		return no
	case yes == no:
		return yes
	}
	e := edge{r, yes, no}
	if n, ok := b.done[e]; ok {
		return n
	}
	var n int32
	switch k.kind {
	case isTest:
		n = b.step(k.kids[0], yes, no)
	case isNot:
		n = b.step(k.kids[0], no, yes)
	case isAnd:
		n = yes
		for i := len(k.kids) - 1; i >= 0; i-- {
			n = b.build(k.kids[i], n, no)
		}
	case isOr:
		n = no
		for i := len(k.kids) - 1; i >= 0; i-- {
			n = b.build(k.kids[i], yes, n)
		}
	}
	b.done[e] = n
	return n
}

func (b *builder) step(number ref, yes, no int32) int32 {
	e := edge{number, yes, no}
	if n, ok := b.steps[e]; ok {
		return n
	}
	t := b.g.formulas.tests[number]
	s := step{code: t.code, field: t.field.id, yes: yes, no: no, ops: t.ops, test: t, number: int32(number)}
	if len(t.set) == 1 {
		s.simple, s.lo, s.hi = true, t.set[0].lo, t.set[0].hi
	}
	if t.code == testDescent {
		s.lo = int64(b.root(t.pid))
	}
	s.cached = t.code == testText && t.words.costly()
	n := int32(len(b.g.steps))
	b.g.steps = append(b.g.steps, s)
	b.steps[e] = n
	return n
}

// root returns the number of a process among those of "descendant of".
func (b *builder) root(pid uint32) int {
	for i, p := range b.g.roots {
		if p == pid {
			return i
		}
	}
	b.g.roots = append(b.g.roots, pid)
	return len(b.g.roots) - 1
}

// Node is a node of the graph, for people.
type Node struct {
	Test   string `json:"test"`
	CostNS int    `json:"cost_ns"` // of the test, about
	// Capture says that a recording with the filter makes the test where calls are
	// recorded; the others are made when it is sealed.
	Capture bool `json:"capture"`
	Yes     int  `json:"yes"` // the next node; Accept or Refuse
	No      int  `json:"no"`
}

// The ends of a graph.
const (
	Accept = -1
	Refuse = -2
)

// Nodes returns the graph, in the order of evaluation: the first is where it begins.
func (g *Graph) Nodes() []Node {
	var list []Node
	last := len(g.steps) - 1 // steps are made from the last to the first
	to := func(n int32) int {
		if n < 0 {
			return int(n)
		}
		return last - int(n)
	}
	for n := last; n >= 0; n-- {
		s := &g.steps[n]
		t := s.test
		list = append(list, Node{t.text, t.cost(), t.code == testOps || lowered(t, event.OpPread64) != nil,
			to(s.yes), to(s.no)})
	}
	return list
}

// Fields returns the names of the fields that the filter looks at, each once.
func (g *Graph) Fields() []string {
	var names []string
	seen := map[string]bool{}
	for _, n := range g.steps {
		t := n.test
		name := t.field.name
		if t.code == testDescent {
			name = "descendant of"
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// String returns the graph, a node a line.
func (g *Graph) String() string {
	var b strings.Builder
	end := func(n int) string {
		switch n {
		case Accept:
			return "accept"
		case Refuse:
			return "refuse"
		}
		return fmt.Sprint(n)
	}
	for i, n := range g.Nodes() {
		fmt.Fprintf(&b, "%d\t%s\t%s\t%s\n", i, n.Test, end(n.Yes), end(n.No))
	}
	return b.String()
}
