// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/replayed"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/replay"
)

func newSkeleton(c *cli.Console) *cobra.Command {
	var o replay.RestoreOptions
	cmd := &cobra.Command{
		Use:   "skeleton TAPE DIR",
		Short: "Make the initial tree: the files that the recorded programs found",
		Long: `Skeleton makes the initial tree in DIR: the files that a replay needs before its first
call. It takes them from the snapshot of the tape, if there is one (record --snapshot),
and from calls that found files that no recorded call had made. Files have the content
that the calls read. A path /home/u/x of the recording becomes DIR/home/u/x.`,
		Example: `  iotape skeleton git.tape before && find before`,
		Args:    cobra.ExactArgs(2),
		Annotations: cli.Exits("0  made",
			"1  made, except the listed files, which the target did not allow", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := cli.OpenTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			made, err := replay.Restore(cmd.Context(), t, args[1], &o)
			if err != nil {
				return err
			}
			err = c.Print(func(w *bufio.Writer) error {
				fmt.Fprintf(w, "%s in %s\n", report.Plural(made.Entries, "entry", "entries"), report.Printable(args[1]))
				if text := replayed.LeftOff(made.LeftOff); text != "" {
					fmt.Fprintln(w, text)
				}
				for _, p := range made.Problems {
					fmt.Fprintf(w, "the target did not allow: %s\n", report.Printable(p))
				}
				return nil
			})
			return cli.Ended(err, len(made.Problems) == 0)
		},
	}
	cmd.Flags().BoolVar(&o.Force, "force", false, "use a directory that is not empty")
	sharedFlag(cmd.Flags(), &o.Shared)
	privilegedFlag(cmd.Flags(), &o.PrivilegedFiles)
	return cmd
}
