// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/fleet/archive"
	"github.com/iotape/iotape/fleet/archiverun"
	"github.com/iotape/iotape/pipe/objectstore"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/store/catalogue"
	"github.com/iotape/iotape/store/lake"
)

// archiving is what to archive, where to, and what stays there.
type archiving struct {
	archiverun.Options
	where catalogueFlag
	lake  lakeFlag
	keep  cli.Days
	size  cli.Size
}

func newArchive(c *cli.Console) *cobra.Command {
	var a archiving
	cmd := &cobra.Command{
		Use:   "archive --to WHERE",
		Short: "Make tapes of the streams of a collector, and store them",
		Long: `Archive makes tapes of the ended streams that a collector has staged. It stores the
tapes in a directory or in an S3 bucket, and reads all of them back. Only then does it
remove the streams. Streams whose frames follow each other become one tape. The manifest
has the reason why the tape begins and ends there (iotape stat shows it). If a run is
interrupted, the next run continues it.

With --keep or --keep-size, archive then removes the oldest tapes, by the time of
storing. Without --data, it does only this. --dry-run lists these tapes.

The server and the keys of a bucket are in the environment: AWS_ENDPOINT_URL,
AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE.`,
		Example: `  iotape archive --data /var/lib/iotape --to /srv/tapes --catalogue /srv/catalogue
  iotape archive --data /var/lib/iotape --to s3://tapes/fleet --every 1m --keep 365d
  iotape archive --data /var/lib/iotape --to /srv/tapes --lake /srv/lake
  iotape archive --to s3://tapes/fleet --keep 365d --keep-size 20T --dry-run`,
		Args: cobra.NoArgs,
		Annotations: cli.Exits("0  done", "1  done, but some streams could not be sealed and are quarantined",
			"2  could not be done, or not completely; the streams are still there"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context(), c) },
	}
	f := cmd.Flags()
	f.StringVar(&a.Archive.Data, "data", "", "the collector's `DIR`")
	f.StringVar(&a.To, "to", "", "the directory, or s3://BUCKET/PREFIX, `WHERE` tapes are stored")
	a.where.Add(cmd)
	a.lake.Add(cmd)
	a.lake.AddFindings(cmd)
	f.DurationVar(&a.Every, "every", 0, "continue, and repeat after `TIME`; 0 means run once")
	f.DurationVar(&a.Archive.Settle, "settle", time.Minute,
		"wait for `TIME` for a stream that may continue an ended one")
	f.Var(&a.keep, "keep", "remove tapes that were stored this long ago: 365d, 12h")
	f.Var(&a.size, "keep-size", "remove the oldest tapes beyond this total size: 500G, 20T")
	f.BoolVar(&a.Keep.DryRun, "dry-run", false,
		"with --keep and --keep-size: list what would be removed, and remove nothing")
	_ = cmd.MarkFlagRequired("to")
	for _, sub := range []*cobra.Command{newArchiveList(c), newArchiveGet(c)} {
		cli.FinishCommand(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func (a *archiving) run(ctx context.Context, c *cli.Console) error {
	o := &a.Options
	o.Keep.Age, o.Keep.Bytes = time.Duration(a.keep), int64(a.size)
	if err := o.Check(); err != nil {
		return cli.Usage(err)
	}
	o.Out, o.Note = c.Escaped(c.Out), c.Reporter().Note
	if o.Archive.Settle <= 0 {
		o.Archive.Settle = -1
	}
	o.Archive.Note, o.Archive.Program, o.Archive.Reporter = o.Note, cli.Program(), sealing.Quiet(c.Reporter())
	var told []func(ctx context.Context, t *archive.Stored) error
	o.Archive.Stored = func(ctx context.Context, t *archive.Stored) error {
		for _, f := range told {
			if err := f(ctx, t); err != nil {
				return err
			}
		}
		return nil
	}
	if a.lake.Given() {
		l, done, err := a.lake.Open(ctx, c)
		if err != nil {
			return err
		}
		defer done()
		told = append(told, func(ctx context.Context, t *archive.Stored) error {
			_, err := addTapeToLake(ctx, c, l, t.Dir, t.Location)
			if errors.Is(err, lake.ErrExpired) {
				err = nil
			}
			return err
		})
	}
	if cat, err := a.where.Open(); err == nil { // or none is asked for
		told = append(told, func(ctx context.Context, t *archive.Stored) error {
			_, err := addCatalogueRow(ctx, c, cat, t.Dir, t.Location)
			return err
		})
		o.Keep.Removed = func(ctx context.Context, location string) error {
			_, err := cat.Remove(ctx, []string{location})
			if errors.Is(err, catalogue.ErrNone) {
				err = nil
			}
			return err
		}
	}
	refused, err := archiverun.Run(ctx, o)
	return cli.Ended(err, refused == 0)
}

func newArchiveList(c *cli.Console) *cobra.Command {
	var asJSON bool
	var clock cli.ClockFlags
	cmd := &cobra.Command{
		Use:   "list WHERE",
		Short: "List the tapes of an archive",
		Long: `List shows the tapes of a directory or bucket. To find tapes by their numbers, use
iotape catalogue find.`,
		Example: `  iotape archive list s3://tapes/fleet
  iotape archive list /srv/tapes --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := objectstore.Open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.Print(func(w *bufio.Writer) error {
				return archiverun.List(cmd.Context(), w, store, asJSON, clock.Form())
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	clock.Add(cmd)
	return cmd
}

func newArchiveGet(c *cli.Console) *cobra.Command {
	var from, out string
	cmd := &cobra.Command{
		Use:   "get --from WHERE TAPE...",
		Short: "Copy tapes out of an archive",
		Long: `Get copies tapes to the working directory, or to DIR, and verifies every file by its
manifest. Name a TAPE as iotape archive list or iotape catalogue find show it, or by the
last part of that name.`,
		Example: `  iotape archive get --from s3://tapes/fleet 20261122T101530Z-2f5a6f2e-6f0b-4b2a-9d5e-0a1b2c3d4e5f-1795331234567890123-7.tape
  iotape catalogue find 'ops.fsync > 1e6' --csv --columns location | tail -n +2 | xargs iotape archive get --from s3://tapes/fleet -o found`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := objectstore.Open(cmd.Context(), from)
			if err != nil {
				return err
			}
			for _, name := range args {
				key, err := archive.Find(cmd.Context(), store, name)
				if err != nil {
					return err
				}
				to := filepath.Join(out, filepath.Base(key))
				if err := archive.Get(cmd.Context(), store, key, to); err != nil {
					return err
				}
				c.Say("%s", to)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "the directory, or s3://BUCKET/PREFIX, `WHERE` tapes are stored")
	f.StringVarP(&out, "output", "o", "", "the `DIR` to copy to (default: the working directory)")
	_ = cmd.MarkFlagRequired("from")
	return cmd
}
