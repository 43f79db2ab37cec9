// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/format/printtape"
	"github.com/iotape/iotape/trace"
)

// printing is what to print of a tape, and how.
type printing struct {
	pids   []uint
	filter cli.FilterFlags
	o      printtape.Options
}

func newPrint(c *cli.Console) *cobra.Command {
	var p printing
	var clock cli.ClockFlags
	cmd := &cobra.Command{
		Use:   "print TAPE",
		Short: "Print the events of a tape, in the form of strace",
		Long: `Print writes the events of a tape in the form of strace(1), one event per line: thread,
time, call with its arguments, result, and duration. --json writes one object per line,
and --csv writes a table. docs/print.md describes their fields. --filter selects events
(docs/filters.md).`,
		Example: `  iotape print git.tape
  iotape print git.tape --from 1000 --to 1100 --max-bytes 200
  iotape print git.tape --filter 'class = namespace and failed'
  iotape print git.tape --json | jq -r 'select(.errno == "ENOENT") | .args.path'`,
		Args:        cobra.ExactArgs(1),
		Annotations: cli.Exits("0  printed", "1  printed, except damaged parts", "2  could not be printed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if p.o.Text.Clock, p.o.Text.Location, err = clock.Lines(cmd); err != nil {
				return err
			}
			if p.o.From > p.o.To {
				return cli.Usage(fmt.Errorf("--from %d is behind --to %d", p.o.From, p.o.To))
			}
			t, err := cli.OpenTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			return p.run(c, t)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&p.o.JSON, "json", false, "print one JSON object per line")
	f.BoolVar(&p.o.CSV, "csv", false, "print a table of comma-separated values")
	f.IntVar(&p.o.Text.MaxBytes, "max-bytes", 32, "show the first `N` bytes of each buffer; -1 means all")
	f.BoolVarP(&p.o.Text.Verbose, "verbose", "v", false, "show all fields of structures and all entries of directories")
	f.BoolVarP(&p.o.Text.Stacks, "stack-trace", "k", false,
		"print the stack below each call that has one (iotape record --stacks)")
	clock.AddLines(cmd)
	f.Uint64Var(&p.o.From, "from", 0, "the first event, by its `SEQ`uence number")
	f.Uint64Var(&p.o.To, "to", math.MaxUint64, "the last event, by its `SEQ`uence number")
	f.Lookup("to").DefValue = "0" // not shown
	f.BoolVar(&p.o.Processes, "processes", false,
		"also print a line for each program that is executed: directory, user, control group (docs/processes.md)")
	cli.AddPIDs(f, &p.pids, "only events of the process or thread `PID`, or of several with commas")
	p.filter.Add(f)
	cmd.MarkFlagsMutuallyExclusive("json", "csv")
	return cmd
}

func (p *printing) run(c *cli.Console, t *trace.Tape) error {
	if p.o.Text.MaxBytes == 0 {
		p.o.Text.MaxBytes = 1
	}
	if len(p.pids) > 0 {
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(p.pids), " ", ", "), "[]")
		p.filter.Texts = append(p.filter.Texts, fmt.Sprintf("pid in {%s} or tid in {%s}", list, list))
	}
	graph, err := p.filter.Graph(c, t)
	if err != nil {
		return err
	}
	if graph != nil {
		p.o.Filter, p.o.Follows = graph.NewMatcher(), graph.Follows()
		defer func() { c.UnknownPrograms(p.o.Filter) }()
	}
	if !p.o.JSON && !p.o.CSV {
		p.o.Text.Style = c.Style(c.Out)
	}
	p.o.Damaged = func(err error) { c.Say("%v", err) }
	damaged := 0
	err = c.Print(func(w *bufio.Writer) (err error) {
		damaged, err = printtape.Tape(w, t, &p.o)
		return err
	})
	return cli.Ended(err, damaged == 0)
}
