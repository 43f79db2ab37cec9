// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/flight"
	"github.com/iotape/iotape/record/flight/show"
)

func newDump(c *cli.Console) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "dump [PID|NAME]",
		Short: "Make a running flight recorder write its memory to a tape",
		Long: `Dump makes a running iotape record --last write its memory to the next tape in its
working directory: NAME-1.tape, NAME-2.tape and so on. Dump waits until the tape exists
and prints its path. The recording continues.

Without an argument, dump uses the only flight recorder of this user. If there are
several, dump lists them. SIGUSR1 to the recorder has the same effect.`,
		Example: `  iotape record --last 30s,512M -o server.tape -- ./server &
  iotape dump
  iotape dump server
  iotape dump --list`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := flight.Running(cmd.Context())
			if err != nil {
				return err
			}
			if list {
				return c.Result(func(w io.Writer) error { return show.Running(w, all) }, true)
			}
			which := ""
			if len(args) > 0 {
				which = args[0]
			}
			fit, err := show.Pick(all, which)
			if errors.Is(err, show.ErrSeveral) {
				err = cmp.Or(c.Result(func(w io.Writer) error { return show.Running(w, fit) }, true), err)
			}
			if err != nil {
				return err
			}
			r := fit[0]
			tape, err := r.Dump(cmd.Context())
			if errors.Is(err, context.Canceled) {
				return err
			}
			if err != nil {
				return fmt.Errorf("dump of %s (process %d): %w", r.Name, r.PID, err)
			}
			return c.Print(func(w *bufio.Writer) error {
				_, err := fmt.Fprintln(w, tape)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the running flight recorders")
	return cmd
}
