// SPDX-License-Identifier: Apache-2.0

package flame

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
)

func lines(n *Node, depth int, b *strings.Builder) {
	fmt.Fprintf(b, "%s%s %d %d\n", strings.Repeat(" ", depth), n.Name, n.Calls, n.NS)
	for _, c := range n.Children {
		lines(c, depth+1, b)
	}
}

// TestTree sums calls of two stacks that share their outermost function.
func TestTree(t *testing.T) {
	frame := func(name string) event.Frame { return event.Frame{Module: "/p", Function: name} }
	one := &event.Stack{Frames: []event.Frame{frame("inner"), frame("main")}}
	two := &event.Stack{Frames: []event.Frame{frame("main")}}
	var s Sums
	for i, st := range []*event.Stack{one, two, one, nil} {
		s.See(&event.Event{Kind: event.Call, Op: event.OpFsync, Comm: "p", Enter: 0, Exit: int64(10 + i), Stack: st})
	}
	s.See(&event.Event{Kind: event.Exited, Stack: one})
	const want = ` 3 33
 p 3 33
  main 3 33
   fsync 1 11
   inner 2 22
    fsync 2 22
`
	var b strings.Builder
	lines(s.Tree(), 0, &b)
	if diff := cmp.Diff(want, b.String()); diff != "" || s.Without != 1 {
		t.Errorf("%d calls are without a stack, want 1; tree, want - got +:\n%s", s.Without, diff)
	}
}
