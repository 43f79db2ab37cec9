// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/predicate/source"
	"github.com/iotape/iotape/record/tracer/config"
	"github.com/iotape/iotape/record/tracer/control"
	"github.com/iotape/iotape/record/tracer/tracerun"
)

// tracersFlags are those of all commands about running tracers.
type tracersFlags struct {
	run  string
	json bool
}

func newTracers(c *cli.Console) *cobra.Command {
	var flags tracersFlags
	cmd := &cobra.Command{
		Use:   "tracers",
		Short: "List, start, stop and change the tracers of a running iotape run",
		Long: `Tracers controls the running iotape run of this user, over a socket that only root and
this user can use. If there are several, select one with --run NAME or --run PID.

iotape makes the tape of a tracer as soon as the tracer is stopped. A tracer that is
started again, or added, knows what the processes of its target have open, and makes
another tape, NAME-2.tape. A changed filter applies to every call that begins after the
change. The old filter applies to every call that began before. No event is lost, and
the tape stays the same.`,
		Example: `  iotape tracers list
  iotape tracers set writes --filter 'op = write and latency > 10ms'
  iotape tracers stop writes
  iotape tracers add more.toml`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	pf := cmd.PersistentFlags()
	pf.StringVar(&flags.run, "run", "", "select the iotape run with this `NAME` or process number")
	pf.BoolVar(&flags.json, "json", false, "print one JSON object")
	one := func(use, short, long string,
		do func(ctx context.Context, r *control.Remote, name string) (string, error)) *cobra.Command {
		verb, _, _ := strings.Cut(use, " ")
		return &cobra.Command{
			Use: use, Short: short, Long: long, Example: "  iotape tracers " + verb + " writes",
			Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return flags.do(cmd.Context(), c, func(r *control.Remote) (string, error) {
					return do(cmd.Context(), r, args[0])
				})
			},
		}
	}
	cmd.AddCommand(
		newTracersList(c, &flags),
		newTracersShow(c, &flags),
		one("start NAME", "Start a tracer",
			"Start starts a tracer that waits or was stopped. The tracer knows what its target has open.",
			func(ctx context.Context, r *control.Remote, name string) (string, error) { return r.Start(ctx, name) }),
		one("stop NAME", "End the recording of a tracer, and make its tape",
			"Stop ends the recording of a tracer and seals it. The target and the other tracers continue.",
			func(ctx context.Context, r *control.Remote, name string) (string, error) { return r.Stop(ctx, name) }),
		newTracersAdd(c, &flags),
		one("remove NAME", "Stop a tracer, and remove it from the run",
			"Remove stops a tracer, if it runs, seals its recording, and removes the tracer from the run.",
			func(ctx context.Context, r *control.Remote, name string) (string, error) { return r.Remove(ctx, name) }),
		newTracersSet(c, &flags),
	)
	for _, sub := range cmd.Commands() {
		cli.FinishCommand(sub)
	}
	return cmd
}

// remote returns the run that is meant.
func (f *tracersFlags) remote(ctx context.Context) (*control.Remote, error) {
	all, err := control.Running(ctx)
	if err != nil {
		return nil, err
	}
	return tracerun.Pick(all, f.run)
}

// do asks for something, and says what came of it.
func (f *tracersFlags) do(ctx context.Context, c *cli.Console, ask func(*control.Remote) (string, error)) error {
	r, err := f.remote(ctx)
	if err != nil {
		return err
	}
	text, err := ask(r)
	if text == "" || err != nil && f.json {
		return err
	}
	printErr := c.Print(func(w *bufio.Writer) error {
		if f.json {
			return jsonout.Line(w, control.Answer{Text: text})
		}
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintln(w, report.OneLine(line))
		}
		return nil
	})
	return errors.Join(err, printErr)
}

func newTracersList(c *cli.Console, flags *tracersFlags) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tracers of all runs", Args: cobra.NoArgs,
		Long: "List shows the tracers of every iotape run of this user: their states, filters, bytes,\n" +
			"losses and outputs.",
		Example: "  iotape tracers list\n  iotape tracers list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := control.Running(cmd.Context())
			if err != nil {
				return err
			}
			list := []control.Info{}
			for _, r := range all {
				if tracerun.Named(r, flags.run) {
					list = append(list, r.Info)
				}
			}
			write := cli.Either(flags.json, tracerun.WriteListJSON, tracerun.WriteList)
			return c.Result(func(w io.Writer) error { return write(w, list) }, true)
		},
	}
}

func newTracersShow(c *cli.Console, flags *tracersFlags) *cobra.Command {
	var clock cli.ClockFlags
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show all details of one tracer", Args: cobra.ExactArgs(1),
		Long: "Show prints what a tracer records, how much of it, its layers and its output, and the\n" +
			"result of its last recording.",
		Example: "  iotape tracers show writes\n  iotape tracers show writes --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := flags.remote(cmd.Context())
			if err != nil {
				return err
			}
			for i := range r.Tracers {
				if x := &r.Tracers[i]; x.Name == args[0] {
					return c.Result(func(w io.Writer) error {
						if flags.json {
							return tracerun.WriteTracerJSON(w, x)
						}
						return tracerun.WriteTracer(w, x, clock.Form())
					}, true)
				}
			}
			return fmt.Errorf("there is no tracer %q", args[0])
		},
	}
	clock.Add(cmd)
	return cmd
}

func newTracersAdd(c *cli.Console, flags *tracersFlags) *cobra.Command {
	return &cobra.Command{
		Use: "add CONFIG", Short: "Add the tracers of a configuration to a run", Args: cobra.ExactArgs(1),
		Long: `Add adds the [[tracer]] tables of a file to a run. It starts each tracer, unless the table
has start = false. Tracers without an input record the target of the run. A tracer cannot
have a target that the run does not have, nor more content than the run records.`,
		Example: "  iotape tracers add more.toml",
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := source.Limited(args[0], config.MaxBytes)
			if err != nil {
				return err
			}
			return flags.do(cmd.Context(), c, func(r *control.Remote) (string, error) {
				return r.Add(cmd.Context(), doc)
			})
		},
	}
}

func newTracersSet(c *cli.Console, flags *tracersFlags) *cobra.Command {
	var change control.Change
	var omit []string
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change a tracer", Args: cobra.ExactArgs(1),
		Long: `Set changes a tracer. --filter, --content and --omit change the current recording.
--tape, --to and --pipe end the current recording, make its tape, and begin a new
recording. Events at the moment of the change are in both.`,
		Example: `  iotape tracers set writes --filter 'op = write and latency > 10ms'
  iotape tracers set writes --filter ''              # all events
  iotape tracers set writes --content hash --tape /srv/writes-2.tape`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("omit") {
				change.Omit = &omit
			}
			if change == (control.Change{}) {
				return cli.Usage(errors.New(
					"no change is given: use --filter, --content, --omit, --tape, --to or --pipe"))
			}
			if err := tracerun.CheckFilter(change.Filter); err != nil {
				return cli.Usage(err)
			}
			return flags.do(cmd.Context(), c, func(r *control.Remote) (string, error) {
				return r.Set(cmd.Context(), args[0], &change)
			})
		},
	}
	f := cmd.Flags()
	f.Var(cli.Optional(&change.Filter), "filter", "only events that match `EXPR`; '' means all events")
	f.Var(cli.Optional(&change.Content), "content",
		"`WHICH` content (bytes that calls move) to keep: full, head:N, hash or none; at most what the run records")
	f.StringSliceVar(&omit, "omit", nil, "omit `GROUPS`: cpu, attributes, listings; '' means none")
	f.Var(cli.Optional(&change.Tape), "tape", "from now on, write to the tape `TAPE`")
	f.Var(cli.Optional(&change.To), "to", "from now on, write to `WHERE`, as with iotape record --to")
	f.Var(cli.Optional(&change.Pipe), "pipe", "from now on, write through the layers of `CHAIN`")
	return cmd
}
