// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/trace"
)

// lakeReportHelp is of the commands that can sum up a lake.
const lakeReportHelp = `

With --lake instead of TAPE, the numbers are those of all tapes in a lake, or of a range of
days and hosts. docs/lake.md has the differences.`

// lakeReport is a section over the rows of a lake.
type lakeReport struct {
	lake lakeFlag
	rows Range
}

func (r *lakeReport) add(cmd *cobra.Command) {
	r.lake.Add(cmd)
	r.rows.Add(cmd)
}

// unused returns what is wrong with a command line with a TAPE.
func (r *lakeReport) unused() error {
	if r.lake.Where != "" {
		return cli.Usage(errors.New("give a TAPE or --lake, not both"))
	}
	return r.rows.Unused()
}

func (r *lakeReport) show(ctx context.Context, c *cli.Console, id string, o *suite.Options, asJSON bool) error {
	if !r.lake.Given() {
		return cli.Usage(errors.New("a TAPE is needed, or --lake WHERE"))
	}
	rows, err := r.rows.Range()
	if err != nil {
		return err
	}
	l, done, err := r.lake.Open(ctx, c)
	if err != nil {
		return err
	}
	defer done()
	p, err := l.Report(ctx, id, rows, o.Sessions)
	if err != nil {
		return noLake(err)
	}
	done()
	return c.Result(cli.Either(asJSON, p.JSON, p.Text), true)
}

// newSuite returns the commands that show one section of the report each, under the
// names that DFSTrace gave its summaries.
func newSuite(c *cli.Console) []*cobra.Command {
	view := func(id string, o *suite.Options, cmd *cobra.Command) *cobra.Command {
		var asJSON bool
		var lake lakeReport
		cmd.Use = id + " [TAPE]"
		cmd.Long += lakeReportHelp
		cmd.Example += "\n  iotape " + id + " --lake /srv/lake --from 2026-05-01 --to 2026-06-01 --host db7,db8"
		cmd.Args = cobra.MaximumNArgs(1)
		cmd.Annotations = cli.Exits("0  done", "1  done, except damaged parts of the tape", "2  could not be done")
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return lake.show(cmd.Context(), c, id, o, asJSON)
			}
			if err := lake.unused(); err != nil {
				return err
			}
			o.Sections = []string{id}
			t, err := cli.OpenTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			p, damaged, err := c.Sections(cmd.Context(), []*trace.Tape{t}, o)
			if err != nil {
				return err
			}
			return c.Result(cli.Either(asJSON, p.JSON, p.Text), damaged == 0)
		}
		lake.add(cmd)
		cmd.Flags().BoolVar(&asJSON, "json", false,
			"print one JSON object with the numbers of the section, times in ns")
		return cmd
	}
	of := &suite.Options{}
	sessions := view("sessions", of, &cobra.Command{
		Short: "Show when the files of a tape were in use, and how much",
		Long: `Sessions divides the time of a tape into intervals. An interval with enough calls on
files is active. A session is a series of active intervals with short gaps. Its level is
low, medium or high. The result is the section sessions of iotape report.
docs/reports.md has the definitions.`,
		Example: `  iotape sessions db7.tape
  iotape sessions db7.tape --interval 1m --activity 100 --gap 2 --transient 3`,
	})
	f := sessions.Flags()
	f.DurationVar(&of.Sessions.Interval, "interval", 0,
		"the length of an interval, a `TIME`; 0 means 15m, or a sixteenth of a tape that is shorter than 4h")
	f.Uint64Var(&of.Sessions.Activity, "activity", 16, "an interval with `N` calls on files is active")
	f.IntVar(&of.Sessions.Gap, "gap", 4, "a session has gaps of at most `N` intervals; -1 means none")
	f.IntVar(&of.Sessions.Transient, "transient", 0,
		"a series of at most `N` active intervals is transient: it is no session")
	return []*cobra.Command{
		view("tstat", &suite.Options{}, &cobra.Command{
			Short: "Count calls and failures by operation and file system",
			Long: `Tstat counts the calls of a tape by operation: how many were made, how many failed, and
on which file system. The result is the section tstat of iotape report. iotape stat has
the times.`,
			Example: `  iotape tstat db7.tape
  iotape tstat db7.tape --json | jq '.tstat.file_systems'`,
		}),
		view("users", &suite.Options{}, &cobra.Command{
			Short: "Summarise the use of files by user",
			Long: `Users sums up the calls of a tape by the user id with which files were accessed. The
result is the section users of iotape report.`,
			Example: `  iotape users db7.tape`,
		}),
		view("patterns", &suite.Options{}, &cobra.Command{
			Short: "Count accesses to files by pattern: whole, sequential or random",
			Long: `Patterns counts the openings of files by use (read-only, write-only or read-write) and
by pattern: the whole file, another part in order, or at random. The result is the
section patterns of iotape report. The section access has each file.`,
			Example: `  iotape patterns db7.tape
  iotape patterns db7.tape --json | jq .patterns.uses.read_only.whole`,
		}),
		sessions,
	}
}
