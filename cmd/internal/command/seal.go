// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/sealing"
)

func newSeal(c *cli.Console) *cobra.Command {
	var out string
	var final, noIndex bool
	cmd := &cobra.Command{
		Use:   "seal STREAM|TAPE.partial",
		Short: "Make a tape of an unsealed recording",
		Long: `Seal makes a tape of a stream: of the directory TAPE.partial that an interrupted iotape
record left, or of a stream file of iotape record --keep-stream.

If the recording is incomplete, seal uses everything up to the last good frame, and the
tape says that it is incomplete. Seal removes the directory TAPE.partial when the tape is
made. It keeps a stream file.`,
		Example: `  iotape seal git.tape.partial
  iotape seal git.stream -o git.tape`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := sealingJob(c, args[0], out, !noIndex)
			if err != nil {
				return err
			}
			j.Final, j.Local = final, true
			done, err := j.Run(cmd.Context())
			if err != nil {
				return err
			}
			if done.Stats.Damage != nil {
				c.Say("%s: read up to %s: %v", args[0], report.Bytes(uint64(done.Stats.Stream)), done.Stats.Damage)
			}
			c.Say("%s", done.Summary())
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "the `TAPE` to make (default: the name of the stream with .tape)")
	cli.AddNoIndex(f, &noIndex)
	f.BoolVar(&final, "final", false,
		"store the state of the files for replay --verify; use it only if the files are still as the recording left "+
			"them")
	return cmd
}

// sealingJob finds out what to seal and where to.
func sealingJob(c *cli.Console, path, out string, index bool) (*sealing.Job, error) {
	j, err := sealing.Plan(path, out)
	if errors.Is(err, sealing.ErrNoName) {
		err = cli.Usage(err)
	}
	if err != nil {
		return nil, err
	}
	j.Index, j.Program, j.Reporter, j.Messages = c.Indexer(index), cli.Program(), c.Reporter(), c.Err
	return j, nil
}
