// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/tracer/config"
	"github.com/iotape/iotape/record/tracer/tracerun"
)

func newRun(c *cli.Console) *cobra.Command {
	var check, example bool
	cmd := &cobra.Command{
		Use:   "run CONFIG [-- COMMAND [ARG...]]",
		Short: "Record with several tracers at once, from a configuration",
		Long: `Run reads a configuration in TOML (docs/tracers.md) and records with each of its
tracers. A tracer has a filter, a choice of what to keep, its own layers, and its own
tape or other output. Tracers of one target share one capture. A further tracer costs
only what it writes.

The target is a command, running processes, a control group, the whole machine, or a
directory that is mounted elsewhere. The tracers can have a common target or a target
each. A COMMAND on the command line is the target of the tracers that name none.

With a COMMAND, run ends when the command ends, with its exit status. Otherwise run ends
with the last target, or on Ctrl-C, SIGTERM or SIGHUP. Then it seals each tape.

During the run, iotape tracers lists, starts, stops and changes the tracers.`,
		Example: `  iotape run tracers.toml
  iotape run writes.toml -- make -j8
  iotape run --check tracers.toml
  iotape run --example > tracers.toml`,
		Annotations: cli.Exits(
			"N    the exit status of the command; 128+N if signal N ended it; 0 without a command",
			"125  iotape itself failed, or the configuration is wrong; with --check 2",
			"126  the command cannot be executed",
			"127  the command was not found"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if example {
				return c.Print(func(w *bufio.Writer) error {
					_, err := w.WriteString(config.Example)
					return err
				})
			}
			if len(args) == 0 {
				return cli.Usage(errors.New("a configuration is needed; --example prints one"))
			}
			var input *config.Input
			command := args[1:]
			if len(command) > 0 && command[0] == "--" {
				command = command[1:]
			}
			if len(command) > 0 {
				input = &config.Input{Command: command}
			}
			cfg, err := readConfig(c, args[0], input, check)
			if err != nil {
				return err
			}
			if check {
				return c.Result(func(w io.Writer) error { return tracerun.Describe(w, cfg) }, true)
			}
			return runTracers(cmd.Context(), c, cfg)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.BoolVar(&check, "check", false, "check and explain the configuration, and record nothing")
	f.BoolVar(&example, "example", false, "print a configuration that has and explains all keys")
	return cmd
}

// readConfig reads and checks a configuration, and says what is odd about it.
func readConfig(c *cli.Console, name string, input *config.Input, check bool) (*config.Config, error) {
	cfg, err := tracerun.ReadConfig(name, input)
	if err != nil {
		return nil, sayErrors(c, err, check)
	}
	for _, w := range cfg.Warnings {
		c.Say("%v", w)
	}
	return cfg, nil
}

// sayErrors says all that is wrong, each with its place, and returns the status.
func sayErrors(c *cli.Console, err error, check bool) error {
	var list config.Errors
	var one *config.Error
	if !errors.As(err, &list) && errors.As(err, &one) {
		list = config.Errors{one}
	}
	status := cli.ExitRecord
	if check {
		status = cli.ExitFailed
	}
	for _, e := range list {
		c.Say("%v", e)
		c.ShowPlace(e)
	}
	if len(list) == 0 {
		return err
	}
	return cli.Status(status, nil)
}

// runTracers records with all tracers of a configuration, to the end.
func runTracers(ctx context.Context, c *cli.Console, cfg *config.Config) error {
	res, err := tracerun.Run(ctx, cfg, &tracerun.Options{
		Program: cli.Program(), Index: c.Indexer(true), Reporter: c.Reporter(), Messages: c.Err, Stdout: c.Out,
		Parse: tracerun.ParseConfig,
	})
	switch {
	case errors.Is(err, tracerun.ErrFailed):
		return cli.Status(cli.ExitRecord, nil)
	case err != nil:
		return cli.CommandError(sayErrors(c, err, false))
	}
	return cli.CommandStatus(res)
}
