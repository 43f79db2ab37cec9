// SPDX-License-Identifier: Apache-2.0

// Package explain shows how a filter is evaluated: what becomes of the expression, and the
// graph of tests that is walked for each event.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package explain

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/predicate"
)

// A Filter is a filter, taken apart. Its JSON is the output of iotape explain-filter --json.
type Filter struct {
	Filter    string           `json:"filter"`
	Evaluated string           `json:"evaluated"` // after folding
	Never     bool             `json:"never"`
	Always    bool             `json:"always"`
	Warnings  []string         `json:"warnings"`
	Nodes     []predicate.Node `json:"nodes"`
	Follows   bool             `json:"follows"` // needs the events before, too
	// What record --filter does with the calls that may be left out.
	Refused []string `json:"refused"` // operations that are never recorded
	Asked   []string `json:"asked"`   // those that are asked when they return
	Steps   int      `json:"steps"`   // of the table for it
}

// New takes a filter apart. mayLeaveOut says which calls a recording may leave out, see
// predicate.Graph.Screen.
func New(g *predicate.Graph, mayLeaveOut func(event.Op) bool) *Filter {
	e := &Filter{
		Filter: g.Expr().String(), Evaluated: g.Simplified(), Never: g.Never(), Always: g.Always(),
		Nodes: g.Nodes(), Follows: g.Follows(), Warnings: []string{},
	}
	for _, warning := range g.Warnings() {
		e.Warnings = append(e.Warnings, warning.Message)
	}
	e.screen(g.Prefilter(mayLeaveOut))
	return e
}

// screen says what a recording does.
func (e *Filter) screen(s *predicate.Prefilter) {
	e.Refused, e.Asked, e.Steps = []string{}, []string{}, len(s.Steps)
	for _, spec := range event.Specs() {
		entry, ok := s.Entries[spec.Op]
		switch {
		case !ok:
		case entry == predicate.PrefilterDrop:
			e.Refused = append(e.Refused, spec.Name)
		default:
			e.Asked = append(e.Asked, spec.Name)
		}
	}
}

// WriteJSON writes it as one object.
func (e *Filter) WriteJSON(w io.Writer) error {
	return jsonout.Object(w, e)
}

// WriteText writes it for people.
func (e *Filter) WriteText(w io.Writer) error {
	var b strings.Builder
	e.summary(&b)
	if len(e.Nodes) > 0 {
		e.table(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (e *Filter) summary(w *strings.Builder) {
	fmt.Fprintf(w, "filter     %s\nevaluated  %s\n", report.Printable(e.Filter), report.Printable(e.Evaluated))
	for _, warning := range e.Warnings {
		fmt.Fprintf(w, "warning    %s\n", report.Printable(warning))
	}
	if e.Follows {
		fmt.Fprintln(w, "follows    needs to see all events: processes, programs or sockets are followed")
	}
}

func (e *Filter) table(w *strings.Builder) {
	fmt.Fprintf(w, "record     leaves out %s; asks %s when they return, in %s\n",
		report.Plural(len(e.Refused), "operation", "operations"),
		report.Plural(len(e.Asked), "operation", "operations"),
		report.Plural(e.Steps, "step", "steps"))
	fmt.Fprintln(w)
	to := func(n int) string {
		switch n {
		case predicate.Accept:
			return "accept"
		case predicate.Refuse:
			return "refuse"
		}
		return fmt.Sprint(n)
	}
	t := report.Table{Head: []string{"node", "decided", "test", "cost", "if so", "if not"}, Left: 3}
	for i, n := range e.Nodes {
		test := n.Test
		const most = 100
		if len(test) > most {
			test = test[:most] + "…"
		}
		where := "sealing"
		if n.Capture {
			where = "capture"
		}
		t.Add(fmt.Sprint(i), where, report.Printable(test), fmt.Sprintf("%d ns", n.CostNS), to(n.Yes), to(n.No))
	}
	_ = t.Write(w) // a Builder takes all
}

// WriteFields lists the fields that filters can ask for.
func WriteFields(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range predicate.Fields() {
		fmt.Fprintf(t, "%s\t%s\n", strings.Join(append([]string{f.Name}, f.Aliases...), ", "), f.About)
	}
	return t.Flush()
}
