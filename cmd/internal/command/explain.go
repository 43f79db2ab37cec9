// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/explain"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

func newExplainFilter(c *cli.Console) *cobra.Command {
	var filter cli.FilterFlags
	var asJSON, fields bool
	var tape string
	cmd := &cobra.Command{
		Use:   "explain-filter [EXPR...]",
		Short: "Show how a filter is evaluated",
		Long: `Explain-filter checks a filter and shows how it is evaluated: the expression after
simplification, and the graph of tests for each event. For each test it shows the
approximate time, and the next test if it is true and if it is false. It also shows
where iotape record --filter makes the test: in the back end during the recording (with
eBPF in the kernel), or at sealing. If there are several expressions, an event must
match all.`,
		Example: `  iotape explain-filter 'path glob *.sst and (latency > 10ms or failed)'
  iotape explain-filter 'strace:-e trace=%file -P /etc/passwd'
  iotape explain-filter --fields`,
		Annotations: cli.Exits("0  shown", "2  the filter has an error"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if fields {
				return c.Print(func(w *bufio.Writer) error { return explain.WriteFields(w) })
			}
			filter.Texts = append(filter.Texts, args...)
			x, err := filter.Expr()
			if err != nil {
				return err
			}
			if x == nil {
				return cli.Usage(fmt.Errorf("no filter is given"))
			}
			host, _ := os.Hostname()
			o := &predicate.Options{Hosts: []predicate.Host{{Name: host}}}
			if tape != "" {
				t, err := trace.Open(tape)
				if err != nil {
					return err
				}
				o = slice.FilterOptions(t)
				t.Close()
			}
			g, err := predicate.Compile(x, o)
			if err != nil {
				return cli.Usage(err)
			}
			e := explain.New(g, slice.MayLeaveOut)
			return c.Result(cli.Either(asJSON, e.WriteJSON, e.WriteText), true)
		},
	}
	f := cmd.Flags()
	f.StringVar(&filter.File, "filter-file", "", "read an expression from `FILE`")
	f.StringVar(&tape, "tape", "", "the `TAPE` to which the filter applies; needed for names of hosts")
	f.BoolVar(&fields, "fields", false, "list and explain the fields")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
