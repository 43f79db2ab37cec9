// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"slices"

	"github.com/iotape/iotape/analyze/report/flame"
	"github.com/iotape/iotape/analyze/report/page"
)

// stacks says which functions made the calls.
type stacks struct{ sums flame.Sums }

func newStacks(*collector) view { return &stacks{} }

func (v *stacks) see(s *seen) { v.sums.See(s.Event) }

// stackRow is a function with all calls that were made in it, or in what it called.
type stackRow struct {
	Function string `json:"function"`
	Calls    uint64 `json:"calls"`
	Bytes    uint64 `json:"bytes"`
	NS       uint64 `json:"time_ns"`
}

func (v *stacks) section(c *collector) page.Section {
	root := v.sums.Tree()
	if root.Calls == 0 && c.o.Sections == nil {
		return page.Section{} // it would say nothing
	}
	rows := v.functions()
	sec := page.Section{ID: "stacks", Title: "Stacks",
		Note: "Which functions made the calls, of calls whose stack was recorded. The outermost is on top; a " +
			"function is as wide as its share. In the table a function has all calls that it, or what it called, made.",
		Data: map[string]any{"calls": root.Calls, "without_stack": v.sums.Without, "functions": rows}}
	if root.Calls == 0 {
		sec.Blocks = []page.Block{page.Line("The tape has no stacks: iotape record --stacks records them.")}
		return sec
	}
	sec.Blocks = []page.Block{
		&page.Flame{Title: "Time in calls, by stack", Unit: page.NS, Measure: flame.Time, Root: root},
		&page.Flame{Title: "Bytes moved, by stack", Unit: page.Bytes, Measure: flame.Bytes, Root: root},
		tableOf("Functions by time", []string{"calls", "bytes", "time", "function"}, -1, rows, 2*c.o.Top,
			func(r *stackRow) []string {
				return []string{Count(r.Calls), Size(r.Bytes), span(int64(r.NS)), r.Function}
			}),
	}
	return sec
}

// mostFunctions bounds the functions of the section's data.
const mostFunctions = 1000

// functions sums the calls by function: once for each call, however often it is in the stack.
func (v *stacks) functions() []stackRow {
	by := map[string]*stackRow{}
	for _, s := range v.sums.Samples() {
		var names []string
		for i := range s.Stack.Frames {
			names = append(names, flame.FrameName(&s.Stack.Frames[i]))
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			r := by[name]
			if r == nil {
				r = &stackRow{Function: name}
				by[name] = r
			}
			r.Calls, r.Bytes, r.NS = r.Calls+s.Calls, r.Bytes+s.Bytes, r.NS+s.NS
		}
	}
	list := []stackRow{}
	for _, r := range by {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b stackRow) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Function, b.Function))
	})
	return list[:min(len(list), mostFunctions)]
}
