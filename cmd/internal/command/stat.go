// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/causal/happens"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/model/aggregate"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/top"
	"github.com/iotape/iotape/trace"
)

func newStat(c *cli.Console) *cobra.Command {
	var asJSON, byNote bool
	var by string
	var o report.Options
	var filter cli.FilterFlags
	cmd := &cobra.Command{
		Use:   "stat TAPE",
		Short: "Summarise the calls, files, processes and losses of a tape",
		Long: `Stat prints for each operation how many calls were made, how many failed, the bytes that
they moved, and the total, median, 99th percentile and longest time, accurate to 1 %.
It also prints the files with the most bytes, the processes with the most time in calls,
and what the recording lacks.

With --by, stat prints one table with a row for each container, unit, user, process,
operation, … as "top --tape" does.`,
		Example: `  iotape stat git.tape
  iotape stat git.tape --top 50
  iotape stat git.tape --filter 'path under /var/lib/db and class = data'
  iotape stat load.tape --by-note
  iotape stat host.tape --by unit,op
  iotape stat git.tape --json | jq '.ops[] | select(.errors > 0)'`,
		Args:        cobra.ExactArgs(1),
		Annotations: cli.Exits("0  done", "1  done, except damaged parts of the tape", "2  could not be done"),
		RunE: cli.WithTape(func(cmd *cobra.Command, t *trace.Tape) error {
			o.Manifest, o.CallName = t.Manifest(), stracetext.CallName
			g, err := filter.Graph(c, t)
			if err != nil {
				return err
			}
			if by != "" {
				return statBy(c, t, g, by, &o, asJSON)
			}
			if g != nil {
				o.Filter = g.Expr().String()
			}
			clock, err := happens.NewClock(t)
			if err != nil {
				return err
			}
			o.Correct = clock.Correct
			if byNote {
				var fits func(*event.Event) bool
				if g != nil {
					m := g.NewMatcher()
					defer c.UnknownPrograms(m)
					fits = m.Match
				}
				r := report.CollectPhases(t.Events(), fits, &o)
				return c.Result(cli.Either(asJSON, r.JSON, r.Text), r.Damaged == 0)
			}
			s := report.Collect(cli.Filtered(c, t, g), &o)
			return c.Result(cli.Either(asJSON, s.JSON, s.Text), s.Quality.DamagedBlocks == 0)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, with times in ns")
	cmd.Flags().BoolVar(&byNote, "by-note", false, "sum up what happened between the notes of the recording")
	cmd.Flags().StringVar(&by, "by", "", "print one table whose rows are by `WHAT`: op, user, process, container, "+
		"pod, unit, cgroup, signal, file, dir, extension, latency, with commas (docs/top.md)")
	cmd.Flags().IntVar(&o.Top, "top", 10, "list the first `N` files and processes, or rows of --by; -1 means all")
	cmd.MarkFlagsMutuallyExclusive("by", "by-note")
	filter.Add(cmd.Flags())
	return cmd
}

// statBy prints the sums of a tape's calls by what is asked for.
func statBy(c *cli.Console, t *trace.Tape, g *predicate.Graph, by string, o *report.Options, asJSON bool) error {
	s := top.Options{Out: c.Out, Results: c.Escaped(c.Out), JSON: asJSON}
	if err := cli.ParseValue(&s.Meter.By, by, aggregate.ParseBy); err != nil {
		return err
	}
	s.View.Order, s.View.Rows = aggregate.OrderTime, max(o.Top, 0)
	return countTape(c, t, g, &s)
}
