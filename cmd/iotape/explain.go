package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// explained is a filter, taken apart.
type explained struct {
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

func newExplainFilter(c *console) *cobra.Command {
	var filter filterFlags
	var asJSON, fields bool
	var tape string
	cmd := &cobra.Command{
		Use:   "explain-filter [EXPR...]",
		Short: "Show how a filter is evaluated",
		Long: `Explain-filter checks a filter and shows what becomes of it: the expression after
folding, and the graph of tests that is walked for each event. For each test it shows
about how long it takes, where the walk goes on if it holds and if not, and whether
iotape record --filter makes it where calls are recorded (with eBPF in the kernel), or
when the recording is sealed. Several expressions have to fit all.`,
		Example: `  iotape explain-filter 'path glob *.sst and (latency > 10ms or failed)'
  iotape explain-filter 'strace:-e trace=%file -P /etc/passwd'
  iotape explain-filter --fields`,
		Annotations: exits("0  shown", "2  the filter is wrong"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if fields {
				return c.print(writeFields)
			}
			filter.texts = append(filter.texts, args...)
			x, err := filter.expr()
			if err != nil {
				return err
			}
			if x == nil {
				return usageError{fmt.Errorf("no filter is given")}
			}
			host, _ := os.Hostname()
			o := &predicate.Options{Hosts: []predicate.Host{{Name: host}}}
			if tape != "" {
				t, err := trace.OpenTape(tape)
				if err != nil {
					return err
				}
				o = slice.FilterOptions(t)
				t.Close()
			}
			g, err := predicate.Compile(x, o)
			if err != nil {
				return usageError{err}
			}
			return c.print(func(w *bufio.Writer) error { return explain(w, g, asJSON) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&filter.file, "filter-file", "", "read an expression from `FILE`")
	f.StringVar(&tape, "tape", "", "the `TAPE` that the filter is for: for names of hosts")
	f.BoolVar(&fields, "fields", false, "list the fields, and what they are")
	f.BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

func writeFields(w *bufio.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range predicate.Fields() {
		fmt.Fprintf(t, "%s\t%s\n", strings.Join(append([]string{f.Name}, f.Aliases...), ", "), f.About)
	}
	return t.Flush()
}

func explain(w *bufio.Writer, g *predicate.Graph, asJSON bool) error {
	e := explained{Filter: g.Expr().String(), Evaluated: g.Simplified(), Never: g.Never(), Always: g.Always(), Nodes: g.Nodes(), Follows: g.Follows(), Warnings: []string{}}
	for _, warning := range g.Warnings() {
		e.Warnings = append(e.Warnings, warning.Message)
	}
	e.screen(g)
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(e)
	}
	fmt.Fprintf(w, "filter     %s\nevaluated  %s\n", report.Printable(e.Filter), report.Printable(e.Evaluated))
	for _, warning := range e.Warnings {
		fmt.Fprintf(w, "warning    %s\n", report.Printable(warning))
	}
	if e.Follows {
		fmt.Fprintln(w, "follows    needs to see all events: processes, programs or sockets are followed")
	}
	if len(e.Nodes) == 0 {
		return nil
	}
	fmt.Fprintf(w, "record     leaves out %s; asks %s when they return, in %s\n",
		report.Plural(len(e.Refused), "operation", "operations"), report.Plural(len(e.Asked), "operation", "operations"), report.Plural(e.Steps, "step", "steps"))
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
	var b strings.Builder
	t.Write(&b)
	_, err := w.WriteString(b.String())
	return err
}

// screen says what a recording does.
func (e *explained) screen(g *predicate.Graph) {
	s := g.Prefilter(slice.MayLeaveOut)
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
