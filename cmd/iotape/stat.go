// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/causal/happens"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

func newStat(c *cli.Console) *cobra.Command {
	var asJSON, byNote bool
	var o report.Options
	var filter cli.FilterFlags
	cmd := &cobra.Command{
		Use:   "stat TAPE",
		Short: "Summarise the calls, files, processes and losses of a tape",
		Long: `Stat prints for each operation how many calls were made, how many failed, the bytes that
they moved, and the total, median, 99th percentile and longest time, accurate to 1 %.
It also prints the files with the most bytes, the processes with the most time in calls,
and what the recording lacks.`,
		Example: `  iotape stat git.tape
  iotape stat git.tape --top 50
  iotape stat git.tape --filter 'path under /var/lib/db and class = data'
  iotape stat load.tape --by-note
  iotape stat git.tape --json | jq '.ops[] | select(.errors > 0)'`,
		Args:        cobra.ExactArgs(1),
		Annotations: cli.Exits("0  done", "1  done, except damaged parts of the tape", "2  could not be done"),
		RunE: cli.WithTape(func(cmd *cobra.Command, t *trace.Tape) error {
			o.Manifest, o.CallName = t.Manifest(), stracetext.CallName
			g, err := filter.Graph(c, t)
			if err != nil {
				return err
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
	cmd.Flags().IntVar(&o.Top, "top", 10, "list the first `N` files and processes; -1 means all")
	filter.Add(cmd.Flags())
	return cmd
}
