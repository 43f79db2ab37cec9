// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/checked"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/remake"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/trace"
)

func newCheck(c *cli.Console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check TAPE",
		Short: "Verify every checksum, count and reference of a tape",
		Long: `Check reads a whole tape and verifies every checksum, hash, count and reference in it.
It prints what is damaged and where. It says of derived files what makes them again. What
replays stored in the tape (the initial tree, the order) it finds again, and compares.`,
		Example: `  iotape check git.tape
  iotape check git.tape --json | jq .damage`,
		Args:        cobra.ExactArgs(1),
		Annotations: cli.Exits("0  the tape is not damaged", "1  the tape is damaged", "2  could not be checked"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := cli.OpenTape(cmd.Context(), args[0])
			if errors.Is(err, trace.ErrCorrupt) || errors.Is(err, trace.ErrTruncated) {
				return cli.Status(cli.ExitFound, err)
			}
			if err != nil {
				return err
			}
			defer t.Close()
			rep, err := remake.Check(cmd.Context(), t, c.Reporter())
			if err != nil {
				return err
			}
			if err := replay.CheckStored(cmd.Context(), t, rep); err != nil {
				return err
			}
			write := cli.Either(asJSON, checked.WriteJSON, checked.WriteText)
			return c.Result(func(w io.Writer) error { return write(w, rep) }, rep.OK())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
