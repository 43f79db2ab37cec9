package main

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/replay"
)

func newSkeleton(c *console) *cobra.Command {
	var force bool
	var shared []string
	cmd := &cobra.Command{
		Use:   "skeleton TAPE DIR",
		Short: "Make the files that the recording found before its first event",
		Long: `Skeleton makes in DIR the tree that the recorded programs found: from the tape's
snapshot, if it has one (record --snapshot), and from what their calls found although
none of them had made it, with the content that they read. It is what a replay begins
with. A path /home/u/x of the recording is DIR/home/u/x.`,
		Example:     `  iotape skeleton git.tape before && find before`,
		Args:        cobra.ExactArgs(2),
		Annotations: exits("0  made", "1  made, but for what the target did not allow, which is listed", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			entries, problems, err := replay.Restore(cmd.Context(), t, args[1], force, shared)
			if err != nil {
				return err
			}
			err = c.print(func(w *bufio.Writer) error {
				fmt.Fprintf(w, "%s in %s\n", report.Plural(entries, "entry", "entries"), report.Printable(args[1]))
				for _, p := range problems {
					fmt.Fprintf(w, "the target did not allow: %s\n", report.Printable(p))
				}
				return nil
			})
			return ended(err, len(problems) == 0)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "make it in a directory that is not empty")
	sharedFlag(cmd.Flags(), &shared)
	return cmd
}
