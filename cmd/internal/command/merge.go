// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/remake"
)

func newMerge(c *cli.Console) *cobra.Command {
	var out string
	var noIndex bool
	cmd := &cobra.Command{
		Use:   "merge -o OUT TAPE...",
		Short: "Join the tapes of several hosts into one",
		Long: `Merge writes the events of all TAPEs to one tape, ordered by the time of the wall clock
at which they returned. It stores equal content once.

Each recording becomes a host of the new tape, even if several recordings are from one
machine. All times are on one clock. The order of events of different hosts is as exact
as the clocks of these hosts. The files that strace -ff wrote in one run are one
recording, and so are the tapes that record --rotate made: merged, they are the tape that
the recording would have made without --rotate.`,
		Example: `  iotape merge -o all.tape client.tape server.tape
  iotape query all.tape "SELECT host, count(*) FROM events GROUP BY host"
  iotape merge -o server.tape server-*.tape         # of iotape record --rotate
  strace -ff -ttt -o make make && iotape merge -o make.tape make.*`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: cli.Exits("0  merged", "2  failed; there is no new tape"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tapes, closeAll, err := cli.OpenHosts(cmd.Context(), args)
			defer closeAll()
			if err != nil {
				return err
			}
			return remake.Merge(cmd.Context(), out, tapes, c.Remaking(!noIndex))
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "the `TAPE` to make")
	cli.AddNoIndex(f, &noIndex)
	_ = cmd.MarkFlagRequired("output")
	return cmd
}
