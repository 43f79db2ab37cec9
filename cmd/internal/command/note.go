// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/notes"
)

func newNote(c *cli.Console) *cobra.Command {
	var recording string
	cmd := &cobra.Command{
		Use:   "note TEXT...",
		Short: "Write a note into a running recording",
		Long: `Note writes a text into a running recording of this user, as of now. It returns when the
note is in the recording. If several recordings run, select one with --recording. Root
can select recordings of other users, too.

print shows notes between the calls. slice --between-notes and stat --by-note use them as
the borders of phases. The events table of iotape query has them in the column note.

A recorded program writes a note without iotape, with access(2). The call costs little if
nobody records the program:

  access("iotape:note TEXT", 0);             C
  test -r 'iotape:note TEXT'                 shell
  os.access('iotape:note TEXT', os.R_OK)     Python`,
		Example: `  iotape record -o load.tape -- ./server &
  iotape note 'load begins'
  iotape note --recording load 'load done'
  iotape slice load.tape phase.tape --between-notes 'load begins,load done'`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: cli.Exits("0  the note is in the recording", "2  it is not"),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := notes.Running(cmd.Context())
			if err != nil {
				return err
			}
			r, err := notes.Find(all, recording)
			if err != nil {
				return err
			}
			return r.Put(cmd.Context(), strings.Join(args, " "))
		},
	}
	cmd.Flags().StringVar(&recording, "recording", "", "the recording with this `NAME` or process number")
	return cmd
}
