// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/replayed"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/replay"
)

func newCompare(c *cli.Console) *cobra.Command {
	x := &replayed.Compare{}
	var on []string
	var asJSON bool
	var html, checks, pace string
	cmd := &cobra.Command{
		Use:   "compare TAPE --on NAME=DIR --on NAME=DIR …",
		Short: "Replay a tape on several file systems, and compare the results",
		Long: `Compare replays a tape below each DIR in turn, in a new directory that it removes
afterwards. It prints elapsed time, system and user time, used space, and the latencies of
each operation, side by side and beside the recording.

Before each run, compare writes back all dirty data. As root, it also drops the page
cache, unless --warm is given. With --runs N, compare replays N times on each target, in
turn. The table then has the median, the least and the largest value. Use an idle machine.`,
		Example: `  iotape compare db.tape --on ext4=/mnt/a --on xfs=/mnt/b --on btrfs=/mnt/c
  iotape compare db.tape --on ext4=/mnt/a --on xfs=/mnt/b --runs 5 --html fs.html
  iotape compare db.tape --on ssd=/mnt/ssd --verify --json | jq .targets.targets`,
		Args: cobra.ExactArgs(1),
		Annotations: cli.Exits("0  done; all calls succeeded or failed as recorded; with --verify, all results agreed",
			"1  something differed somewhere", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cmp.Or(
				cli.ParseFlag(&x.Options.Checks, "verify", checks, replay.ParseChecks),
				cli.ParseFlag(&x.Options.Pace, "pace", pace, replay.ParsePace))
			if err != nil {
				return err
			}
			if x.Runs < 1 || x.Runs > 1000 {
				return cli.Usage(errors.New("--runs: the value must be from 1 to 1000"))
			}
			if x.Targets, err = replayed.ParseTargets(on); errors.As(err, new(*replayed.TargetError)) {
				return cli.Usage(err)
			} else if err != nil {
				return err
			}
			t, err := cli.OpenTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			progress := c.Progress(report.Count)
			x.Progress = func(phase string, done, total uint64) { progress.Update(phase, int64(done), int64(total)) }
			r, err := x.Run(cmd.Context(), t)
			progress.Done()
			if err != nil {
				return err
			}
			p := r.Page()
			if html != "" {
				if err := wholefile.Write(html, func(w io.Writer) error { return p.HTML(w, nil) }); err != nil {
					return err
				}
			}
			return c.Result(cli.Either(asJSON, p.JSON, p.Text), r.OK())
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&on, "on", nil, "a target, `NAME=DIR`; repeatable")
	f.IntVar(&x.Runs, "runs", 1, "replay `N` times on each target, in turn")
	f.BoolVar(&x.Warm, "warm", false, "do not drop the page cache before each run")
	f.StringVar(&pace, "pace", "afap", "`WHEN` to make calls: afap, think or recorded, as with iotape replay")
	f.StringVar(&checks, "verify", "none",
		"compare with the recording, as with iotape replay; this takes additional time")
	f.Lookup("verify").NoOptDefVal = "all"
	sharedFlag(f, &x.Options.Shared)
	f.StringVar(&html, "html", "", "also write a page with pictures to `FILE`")
	f.BoolVar(&asJSON, "json", false, "print one JSON object, with times in ns")
	return cmd
}
