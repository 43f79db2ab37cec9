// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/record/tracer/config"
	"github.com/iotape/iotape/record/tracer/tracerun"
)

func newRun(c *console) *cobra.Command {
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
		Annotations: exits(
			"N    the exit status of the command; 128+N if signal N ended it; 0 without a command",
			"125  iotape itself failed, or the configuration is wrong; with --check 2",
			"126  the command cannot be executed",
			"127  the command was not found"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if example {
				return c.print(func(w *bufio.Writer) error {
					_, err := w.WriteString(config.Example)
					return err
				})
			}
			if len(args) == 0 {
				return usageError{errors.New("a configuration is needed; --example prints one")}
			}
			var input *config.Input
			command := args[1:]
			if len(command) > 0 && command[0] == "--" {
				command = command[1:]
			}
			if len(command) > 0 {
				input = &config.Input{Command: command}
			}
			cfg, err := c.readConfig(args[0], input, check)
			if err != nil {
				return err
			}
			if check {
				return c.result(func(w io.Writer) error { return tracerun.Describe(w, cfg) }, true)
			}
			return c.runTracers(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.BoolVar(&check, "check", false, "check and explain the configuration, and record nothing")
	f.BoolVar(&example, "example", false, "print a configuration that has and explains all keys")
	return cmd
}

// readConfig reads and checks a configuration, and says what is odd about it.
func (c *console) readConfig(name string, input *config.Input, check bool) (*config.Config, error) {
	cfg, err := tracerun.ReadConfig(name, input)
	if err != nil {
		return nil, c.sayErrors(err, check)
	}
	for _, w := range cfg.Warnings {
		c.say("%v", w)
	}
	return cfg, nil
}

// sayErrors says all that is wrong, each with its place, and returns the status.
func (c *console) sayErrors(err error, check bool) error {
	var list config.Errors
	var one *config.Error
	if !errors.As(err, &list) && errors.As(err, &one) {
		list = config.Errors{one}
	}
	status := exitRecord
	if check {
		status = exitFailed
	}
	for _, e := range list {
		c.say("%v", e)
		c.showPlace(e)
	}
	if len(list) == 0 {
		return err
	}
	return &statusError{Status: status}
}

// runTracers records with all tracers of a configuration, to the end.
func (c *console) runTracers(ctx context.Context, cfg *config.Config) error {
	res, err := tracerun.Run(ctx, cfg, &tracerun.Options{
		Program: program(), Index: c.indexer(true), Reporter: reporter{c}, Messages: c.err, Stdout: c.out,
		Parse: tracerun.ParseConfig,
	})
	switch {
	case errors.Is(err, tracerun.ErrFailed):
		return &statusError{Status: exitRecord}
	case err != nil:
		return commandError(c.sayErrors(err, false))
	}
	return commandStatus(res)
}
