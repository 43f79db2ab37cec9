// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/remake"
	"github.com/iotape/iotape/record/sealing"
)

func newRepair(c *cli.Console) *cobra.Command {
	var out string
	var noIndex bool
	cmd := &cobra.Command{
		Use:   "repair TAPE.partial|STREAM|TAPE",
		Short: "Make a valid tape of an interrupted recording, or of a damaged tape",
		Long: `Repair makes a tape of a recording whose recorder was killed, or whose machine stopped.
The argument is the directory TAPE.partial with its snapshots, or a stream. The tape has
everything up to the last complete frame, and says that it is incomplete. Repair prints
what it cut off, and the time at which the recording stops. It removes the directory when
the tape is made. It keeps a stream.

Repair does not touch a recording that is still in progress.

If the argument is a damaged TAPE (files truncated, changed, or no manifest), repair makes
another tape, NAME.repaired.tape, of all sound data, and prints what is damaged. The new
tape has a mark where events are lost, and marks lost content as missing. Repair keeps the
damaged tape.`,
		Example: `  iotape repair db.tape.partial
  iotape repair db.tape && iotape check db.repaired.tape
  iotape repair db.stream -o db.tape`,
		Args: cobra.ExactArgs(1),
		Annotations: cli.Exits("0  a complete tape was made, or TAPE was not damaged",
			"1  an incomplete tape was made; it has the reason", "2  no tape could be made; the input is unchanged"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if sealing.IsTape(args[0]) {
				complete, err := remake.Repair(cmd.Context(), args[0], out, c.Remaking(!noIndex))
				return cli.Ended(err, complete)
			}
			s, err := sealingJob(c, args[0], out, !noIndex)
			if err != nil {
				return err
			}
			fi, err := os.Stat(s.Stream)
			if err != nil {
				return err
			}
			done, err := s.Run(cmd.Context())
			if err != nil {
				return err
			}
			lacks, complete := done.Lacks(fi.Size(), cli.Program())
			for _, line := range lacks {
				c.Say("%s", line)
			}
			c.Say("%s", done.Summary())
			return cli.Ended(nil, complete)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "",
		"the `TAPE` to make (default: the name of the input with .tape or .repaired.tape)")
	cli.AddNoIndex(f, &noIndex)
	return cmd
}
