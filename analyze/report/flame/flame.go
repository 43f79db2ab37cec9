// SPDX-License-Identifier: Apache-2.0

package flame

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/iotape/iotape/event"
)

// Weight is what calls are counted by.
type Weight struct {
	Calls uint64
	Bytes uint64 // moved
	NS    uint64 // in the calls
}

func (w *Weight) add(o Weight) {
	w.Calls += o.Calls
	w.Bytes += o.Bytes
	w.NS += o.NS
}

// Measure is one of the three.
type Measure string

// The measures.
const (
	Calls Measure = "calls"
	Bytes Measure = "bytes"
	Time  Measure = "time" // ns
)

// ParseMeasure checks a name.
func ParseMeasure(s string) (Measure, error) {
	switch m := Measure(s); m {
	case Calls, Bytes, Time:
		return m, nil
	}
	return "", fmt.Errorf("weight %q is none of calls, bytes and time", s)
}

// Of returns a weight by the measure.
func (m Measure) Of(w Weight) uint64 {
	switch m {
	case Bytes:
		return w.Bytes
	case Time:
		return w.NS
	}
	return w.Calls
}

// Key is what calls have in common that are summed.
type Key struct {
	Stack *event.Stack
	Comm  string
	Op    event.Op
}

// Sample is the sum of the calls of a key.
type Sample struct {
	Key
	Weight
	order int
}

// Sums adds up calls by their stacks. The zero value is ready to use.
type Sums struct {
	Without uint64 // calls without a stack
	samples map[Key]*Sample
}

// mostSamples bounds the sums; what is beyond is counted as without a stack.
const mostSamples = 1 << 20

// See takes an event.
func (s *Sums) See(ev *event.Event) {
	if ev.Kind != event.Call {
		return
	}
	key := Key{ev.Stack, ev.Comm, ev.Op}
	sum := s.samples[key]
	if ev.Stack == nil || sum == nil && len(s.samples) >= mostSamples {
		s.Without++
		return
	}
	if sum == nil {
		if s.samples == nil {
			s.samples = map[Key]*Sample{}
		}
		sum = &Sample{Key: key, order: len(s.samples)}
		s.samples[key] = sum
	}
	took, _ := ev.Took()
	sum.add(Weight{Calls: 1, Bytes: uint64(max(ev.Traffic().Bytes(), 0)), NS: uint64(took)})
}

// Samples returns the sums in the order in which their keys came.
func (s *Sums) Samples() []*Sample {
	list := make([]*Sample, 0, len(s.samples))
	for _, x := range s.samples {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *Sample) int { return cmp.Compare(a.order, b.order) })
	return list
}

// FrameName returns how a frame is called in a picture: its function, or its module and the position in it.
func FrameName(f *event.Frame) string {
	switch {
	case f.Function != "":
		return f.Function
	case f.Module != "":
		return fmt.Sprintf("%s+0x%x", path.Base(f.Module), f.Offset)
	}
	return fmt.Sprintf("0x%x", f.Offset)
}

// Path returns the names of a sample from the outside: the thread's, its functions, the call.
func (s *Sample) Path() []string {
	names := []string{s.Comm}
	for i := len(s.Stack.Frames) - 1; i >= 0; i-- {
		names = append(names, FrameName(&s.Stack.Frames[i]))
	}
	return append(names, s.Op.String())
}

// Node is a part of a flame graph: a function with those that it called.
type Node struct {
	Name string
	Weight
	Children []*Node
	by       map[string]*Node
}

// maxNodes bounds a tree.
const maxNodes = 1 << 20

// Tree makes the tree of all samples. Its root has no name.
func (s *Sums) Tree() *Node {
	root, nodes := &Node{}, 1
	for _, x := range s.Samples() {
		at := root
		root.add(x.Weight)
		for _, name := range x.Path() {
			next := at.by[name]
			if next == nil {
				if nodes++; nodes > maxNodes {
					break
				}
				if at.by == nil {
					at.by = map[string]*Node{}
				}
				next = &Node{Name: name}
				at.by[name] = next
				at.Children = append(at.Children, next)
			}
			next.add(x.Weight)
			at = next
		}
	}
	root.sort()
	return root
}

// sort orders the children by name, as flame graphs have them.
func (n *Node) sort() {
	slices.SortFunc(n.Children, func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range n.Children {
		c.sort()
	}
}
