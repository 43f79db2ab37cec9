// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/store/lake"
)

func newLake(c *cli.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lake",
		Short: "Keep the rows of many tapes in the tables of a lake",
		Long: `Lake keeps the events, opens, processes, files, content, findings and summaries of many
tapes in Apache Iceberg tables, in a directory or an S3 bucket. The tables are partitioned
by day and host. iotape query --lake asks them. So can Spark, Trino, ClickHouse, DuckDB
and all other programs that read Iceberg. docs/lake.md describes the tables.`,
		Example: `  iotape lake add --lake /srv/lake *.tape
  iotape query --lake /srv/lake --host db7 --from 2026-11-22 "SELECT op, count(*) FROM events GROUP BY op"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{newLakeAdd(c), newLakeList(c), newLakeCompact(c), newLakeExpire(c)} {
		cli.FinishCommand(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func newLakeAdd(c *cli.Console) *cobra.Command {
	var where lakeFlag
	var location string
	cmd := &cobra.Command{
		Use:   "add TAPE...",
		Short: "Add tapes to a lake",
		Long: `Add adds the rows of each TAPE to all tables of the lake, in one commit. A tape that is in
the lake is not added again, also if add was killed, or if two programs add it at the same
time. The first add makes the lake. iotape archive --lake adds the tapes that it makes.

The findings are those of iotape flow, which takes some 6 µs and 200 bytes of memory for
each event. In larger tapes than --lake-findings says, add does not look for findings.
Then their number in the table of summaries is NULL.`,
		Example: `  iotape lake add --lake /srv/lake /srv/tapes/*.tape
  iotape lake add --lake s3://lake/fleet --location s3://tapes/db7.tape ./db7.tape`,
		Args: cobra.MinimumNArgs(1),
		Annotations: cli.Exits("0  the tapes are in the lake", "1  some tapes could not be added",
			"2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if location != "" && len(args) > 1 {
				return cli.Usage(errors.New("--location is for one tape"))
			}
			l, done, err := where.Open(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer done()
			return addToLake(cmd.Context(), c, l, args, location)
		},
	}
	where.Add(cmd)
	where.AddFindings(cmd)
	cmd.Flags().StringVar(&location, "location", "", "where the tape is kept, `WHERE` (default: its path)")
	return cmd
}

func addToLake(ctx context.Context, c *cli.Console, l *lake.Lake, tapes []string, location string) error {
	var added, expired, failed int
	for _, path := range tapes {
		isNew, err := addTapeToLake(ctx, c, l, path, location)
		switch {
		case errors.Is(err, lake.ErrExpired):
			expired++
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil:
			c.Say("%v", err)
			failed++
		case isNew:
			added++
		}
	}
	c.Say("%s added, %d there already, %d too old", report.Plural(added, "tape", "tapes"),
		len(tapes)-added-failed-expired, expired)
	switch {
	case failed == len(tapes):
		return cli.Status(cli.ExitFailed, nil)
	case failed > 0:
		return cli.Status(cli.ExitFound, nil)
	}
	return nil
}

// withLake makes a command's RunE of what it does with a lake that is there.
func withLake(c *cli.Console, where *lakeFlag, run func(*cobra.Command, *lake.Lake) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, _ []string) error {
		l, done, err := where.Open(cmd.Context(), c)
		if err != nil {
			return err
		}
		defer done()
		return noLake(run(cmd, l))
	}
}

// noLake says what makes a lake.
func noLake(err error) error {
	if errors.Is(err, lake.ErrNone) {
		return hint.With(err, "iotape lake add makes it")
	}
	return err
}

// lakeTable is a line of iotape lake list --json.
type lakeTable struct {
	Table     string `json:"table"`
	Rows      int64  `json:"rows"`
	Files     int    `json:"files"`
	Bytes     int64  `json:"bytes"`
	Hosts     int    `json:"hosts"`
	First     string `json:"first_day,omitempty"`
	Last      string `json:"last_day,omitempty"`
	Snapshots int    `json:"snapshots"`
	Location  string `json:"location"`
	Metadata  string `json:"metadata"`
}

func newLakeList(c *cli.Console) *cobra.Command {
	var where lakeFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tables of a lake",
		Long: `List shows the tables of the lake: rows, files, size, hosts and days. With --json it also
has the location of each table and of its metadata file, which other programs need.`,
		Example: `  iotape lake list --lake /srv/lake
  iotape lake list --lake s3://lake/fleet --json`,
		Args: cobra.NoArgs,
		RunE: withLake(c, &where, func(cmd *cobra.Command, l *lake.Lake) error {
			list, err := l.List(cmd.Context())
			if err != nil {
				return err
			}
			return c.Print(func(w *bufio.Writer) error { return writeLakeTables(w, list, asJSON) })
		}),
	}
	where.Add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

func writeLakeTables(w *bufio.Writer, list []lake.Table, asJSON bool) error {
	day := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.DateOnly)
	}
	if asJSON {
		enc := json.NewEncoder(w)
		for _, t := range list {
			if err := enc.Encode(lakeTable{t.Name, t.Rows, t.Files, t.Bytes, t.Hosts, day(t.First), day(t.Last),
				t.Snapshots, t.Location, t.Metadata}); err != nil {
				return err
			}
		}
		return nil
	}
	table := report.Table{Head: []string{"table", "rows", "files", "size", "hosts", "first day", "last day"}, Left: 1}
	for _, t := range list {
		table.Add(t.Name, report.Count(uint64(t.Rows)), report.Count(uint64(t.Files)), report.Bytes(uint64(t.Bytes)),
			report.Count(uint64(t.Hosts)), day(t.First), day(t.Last))
	}
	return table.Write(w)
}

func newLakeCompact(c *cli.Console) *cobra.Command {
	var where lakeFlag
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Join the small files of a lake",
		Long: `Compact joins the small files of each day and host, so that queries open fewer. Queries
and additions can go on meanwhile. If it is stopped, what is done stays. iotape lake
expire removes the old files.`,
		Example: `  iotape lake compact --lake /srv/lake && iotape lake expire --lake /srv/lake`,
		Args:    cobra.NoArgs,
		RunE: withLake(c, &where, func(cmd *cobra.Command, l *lake.Lake) error {
			joined, err := l.Compact(cmd.Context())
			if err != nil {
				return err
			}
			c.Say("%s became %d (%s)", report.Plural(joined.Before, "file", "files"), joined.After,
				report.Bytes(uint64(joined.Bytes)))
			return nil
		}),
	}
	where.Add(cmd)
	return cmd
}

func newLakeExpire(c *cli.Console) *cobra.Command {
	var where lakeFlag
	var keep cli.Days
	grace := cli.Days(24 * time.Hour)
	var e lake.Expiry
	cmd := &cobra.Command{
		Use:   "expire",
		Short: "Remove old days, and files that are not needed, from a lake",
		Long: `Expire removes files that the tables do not need any more: files that compact has joined,
old metadata, and what a killed run left. With --keep it first removes the rows of old
days from all tables, in one commit. Tapes that begin on such a day are not added again.

Files stay for the time of --grace. Queries and additions that take longer fail.`,
		Example: `  iotape lake expire --lake /srv/lake --keep 730d
  iotape lake expire --lake /srv/lake --keep 730d --dry-run`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if e.DryRun && keep == 0 {
				return cli.Usage(errors.New("--dry-run is for --keep"))
			}
			return nil
		},
		RunE: withLake(c, &where, func(cmd *cobra.Command, l *lake.Lake) error {
			e.Keep, e.Grace = time.Duration(keep), time.Duration(grace)
			gone, err := l.Expire(cmd.Context(), &e)
			if err != nil {
				return err
			}
			rows := report.Plural(uint64(gone.Rows), "row", "rows")
			if e.DryRun {
				c.Say("%s in %s would be removed", rows, report.Plural(uint64(gone.Files), "file", "files"))
				return nil
			}
			c.Say("%s expired; %s that were not needed removed (%s)", rows, report.Plural(gone.Old, "file", "files"),
				report.Bytes(uint64(gone.Bytes)))
			return nil
		}),
	}
	where.Add(cmd)
	f := cmd.Flags()
	f.Var(&keep, "keep", "remove the rows of days that ended this long ago: 365d, 12h")
	f.Var(&grace, "grace", "keep files that are not needed for this time: 7d, 12h")
	f.BoolVar(&e.DryRun, "dry-run", false, "with --keep: count the rows that would be removed, and remove nothing")
	return cmd
}
