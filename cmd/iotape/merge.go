// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/merge"
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
as the clocks of these hosts.`,
		Example: `  iotape merge -o all.tape client.tape server.tape
  iotape query all.tape "SELECT host, count(*) FROM events GROUP BY host"`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: cli.Exits("0  merged", "2  failed; there is no new tape"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return mergeTapes(cmd.Context(), c, args, out, !noIndex)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "the `TAPE` to make")
	cli.AddNoIndex(f, &noIndex)
	_ = cmd.MarkFlagRequired("output")
	return cmd
}

func mergeTapes(ctx context.Context, c *cli.Console, names []string, out string, index bool) error {
	tapes, closeAll, err := cli.OpenTapes(ctx, names)
	defer closeAll()
	if err != nil {
		return err
	}
	made, err := sealing.Make(ctx, out, c.Making(index, report.Count),
		func(tw *trace.TapeWriter, update sealing.Update) (*trace.Manifest, error) {
			return merge.Tapes(ctx, tw, tapes,
				&merge.Options{Program: cli.Program(), Progress: func(done, total uint64) {
					update("merging", done, total)
				}})
		})
	if err != nil {
		return err
	}
	m := made.Manifest
	if merge.LostKeys(m, tapes) {
		c.Say("the tapes are not anonymised with the same keys and fields, so the new tape cannot be revealed")
	}
	c.Say("%s of %s: %s, %s", report.Plural(len(m.Hosts), "recording", "recordings"),
		report.Plural(len(tapes), "tape", "tapes"),
		report.Count(m.Counts.Events)+" events", report.Bytes(uint64(made.Bytes)))
	return nil
}
