// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
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
			cfg, err := cli.ReadConfig(c, args[0], input, check)
			if err != nil {
				return err
			}
			if check {
				return c.Result(func(w io.Writer) error { return tracerun.Describe(w, cfg) }, true)
			}
			return cli.RunTracers(cmd.Context(), c, cfg)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.BoolVar(&check, "check", false, "check and explain the configuration, and record nothing")
	f.BoolVar(&example, "example", false, "print a configuration that has and explains all keys")
	return cmd
}
