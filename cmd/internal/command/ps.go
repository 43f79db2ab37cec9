// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/processtree"
	"github.com/iotape/iotape/causal/happens"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/trace"
)

func newPS(c *cli.Console) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "ps TAPE",
		Short: "Draw the tree of processes of a tape",
		Long: `Ps prints a line for each process of a tape, below the process that made it: what it
executed, as which user, how many calls it made and how many failed, the bytes that it
read and wrote, its calls of fsync and the like, the time in calls, when it started, how
long it lived, and its exit status or the signal that ended it.

A + behind the time means that the process still ran at the end of the recording. A name
in parentheses is the name that the kernel has for a process that executed no program.`,
		Example: `  iotape ps make.tape
  iotape ps make.tape --long
  iotape ps make.tape --json | jq '.. | objects | select(.signal) | .pid'`,
		Args:        cobra.ExactArgs(1),
		Annotations: cli.Exits("0  done", "1  done, except damaged parts of the tape", "2  could not be done"),
		RunE: cli.WithTape(func(_ *cobra.Command, t *trace.Tape) error {
			clock, err := happens.NewClock(t)
			if err != nil {
				return err
			}
			tree := processtree.Collect(t, clock.Correct)
			text := func(w io.Writer) error { return tree.Text(w, all) }
			return c.Result(cli.Either(asJSON, tree.JSON, text), tree.Damaged == 0)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, with times in ns")
	cmd.Flags().BoolVarP(&all, "long", "l", false, "print whole command lines")
	return cmd
}
