// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/store/catalogue"
)

func newCatalogue(c *cli.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalogue",
		Short: "Find tapes among many, by their numbers",
		Long: `Catalogue keeps a row for each tape: its host, start and length, calls by operation,
bytes, failures, losses, users, accesses, sessions, times and habits. The rows are
Parquet files by month, day and host, which other engines can read. docs/catalogue.md
describes them. The first iotape catalogue add makes the catalogue.`,
		Example: `  iotape catalogue add --catalogue /srv/catalogue *.tape
  iotape catalogue find --catalogue /srv/catalogue 'host == "db7" && ops.fsync > 1e6 && duration > 1h'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{newCatalogueAdd(c), newCatalogueFind(c), newCatalogueList(c),
		newCatalogueRemove(c), newCatalogueCompact(c), newCatalogueCheck(c)} {
		cli.FinishCommand(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func newCatalogueAdd(c *cli.Console) *cobra.Command {
	var where catalogueFlag
	var location string
	cmd := &cobra.Command{
		Use:   "add TAPE...",
		Short: "Add tapes to a catalogue",
		Long: `Add reads each TAPE once, and adds its row. It does not change the row of a tape that is
in the catalogue. If another tape was at the same place before, add removes its row.
iotape archive adds the tapes that it makes.`,
		Example: `  iotape catalogue add --catalogue /srv/catalogue /srv/tapes/*.tape
  iotape catalogue add --catalogue /srv/catalogue --location s3://tapes/db7.tape ./db7.tape`,
		Args: cobra.MinimumNArgs(1),
		Annotations: cli.Exits("0  the tapes are in the catalogue", "1  some tapes could not be added",
			"2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cat, err := where.Open()
			if err != nil {
				return err
			}
			if location != "" && len(args) > 1 {
				return cli.Usage(errors.New("--location is for one tape"))
			}
			var added, failed int
			for _, path := range args {
				n, err := addCatalogueRow(cmd.Context(), c, cat, path, location)
				if err != nil {
					if cmd.Context().Err() != nil {
						return err
					}
					c.Say("%s: %v", path, err)
					failed++
				}
				added += n
			}
			c.Say("%s added, %d there already", report.Plural(added, "tape", "tapes"), len(args)-added-failed)
			switch {
			case failed == len(args):
				return cli.Status(cli.ExitFailed, nil)
			case failed > 0:
				return cli.Status(cli.ExitFound, nil)
			}
			return nil
		},
	}
	where.Add(cmd)
	cmd.Flags().StringVar(&location, "location", "", "where the tape is kept, `WHERE` (default: its path)")
	return cmd
}

// finding is what to look for and how to show it.
type finding struct {
	where     catalogueFlag
	lake      lakeFlag
	rows      Range
	o         catalogue.Options
	csv, json bool
	clock     cli.ClockFlags
}

func (q *finding) add(cmd *cobra.Command) {
	q.where.Add(cmd)
	q.lake.Add(cmd)
	q.rows.AddTimes(cmd)
	cmd.MarkFlagsMutuallyExclusive("catalogue", "lake")
	f := cmd.Flags()
	f.StringSliceVar(&q.o.Columns, "columns", nil, "show the columns `NAME,…`, with the values of the files")
	f.StringVar(&q.o.Sort, "sort", "start", "sort by this `COLUMN`")
	f.BoolVar(&q.o.Reverse, "reverse", false, "reverse the order")
	f.IntVar(&q.o.Limit, "limit", 0, "show the first `N` tapes; 0 means all")
	q.clock.Add(cmd)
	f.BoolVar(&q.csv, "csv", false, "print comma-separated values with a header")
	f.BoolVar(&q.json, "json", false, "print one JSON object per line")
	cmd.MarkFlagsMutuallyExclusive("json", "csv")
}

// show prints what fits a filter: of people's columns in their units, else as it is.
func (q *finding) show(ctx context.Context, c *cli.Console, filter *predicate.Expr) error {
	people := !q.csv && !q.json && q.o.Columns == nil
	if people {
		q.o.Columns = catalogue.TableColumns()
	}
	rows, end, err := q.find(ctx, c, filter)
	if err != nil {
		return err
	}
	defer end()
	return c.Print(func(w *bufio.Writer) error {
		if people {
			return catalogue.WriteTable(w, rows, q.clock.Form())
		}
		_, err := store.Render(w, rows, tableFormat(q.csv, q.json))
		return err
	})
}

// find asks the catalogue, or the summaries of a lake if --lake is given. end is to be called when
// the rows are read.
func (q *finding) find(ctx context.Context, c *cli.Console, filter *predicate.Expr) (_ *store.Rows, end func() error,
	err error) {
	if q.lake.Where == "" {
		if err := q.rows.Unused(); err != nil {
			return nil, nil, err
		}
		cat, err := q.where.Open()
		if err != nil {
			return nil, nil, err
		}
		rows, err := cat.Find(ctx, filter, &q.o)
		if errors.Is(err, catalogue.ErrNone) {
			err = hint.With(err, "iotape catalogue add makes it")
		}
		if err != nil {
			return nil, nil, err
		}
		return rows, rows.Close, nil
	}
	r, err := q.rows.Range()
	if err != nil {
		return nil, nil, err
	}
	question, err := catalogue.Statement(filter, &q.o)
	if err != nil {
		return nil, nil, err
	}
	l, done, err := q.lake.Open(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	rows, err := l.Find(ctx, question, r)
	if err != nil {
		return nil, nil, noLake(err)
	}
	return rows.Rows, rows.Close, nil
}

func newCatalogueFind(c *cli.Console) *cobra.Command {
	var q finding
	var fields bool
	cmd := &cobra.Command{
		Use:   "find EXPR",
		Short: "Find the tapes that match a filter",
		Long: `Find shows the tapes that match a filter. The filter language is that of iotape print
--filter, with the fields of the catalogue: --fields lists them. Write values by name
with a point, as in ops.fsync or p99.read. docs/catalogue.md has examples. With --lake,
find shows the tapes of a lake, which has the same fields.`,
		Example: `  iotape catalogue find 'host == "db7" && ops.fsync > 1e6 && duration > 1h'
  iotape catalogue find 'start >= 2026-05-01 and (lost > 0 or p99.fsync > 100ms)' --json
  iotape catalogue find 'comm = mysqld and patterns.read_only_random > 1000' --columns location
  iotape catalogue find --lake /srv/lake --host db7 --from 2026-05-01 'ops.fsync > 1e6'`,
		Args:        cobra.MaximumNArgs(1),
		Annotations: cli.Exits("0  done", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if fields {
				return c.Result(catalogue.WriteFields, true)
			}
			if len(args) == 0 {
				return cli.Usage(errors.New("a filter is needed; --fields lists the fields"))
			}
			x, err := predicate.Parse(args[0])
			if err != nil {
				return catalogueFilterError(err)
			}
			return catalogueFilterError(q.show(cmd.Context(), c, x))
		},
	}
	q.add(cmd)
	cmd.Flags().BoolVar(&fields, "fields", false, "list and explain the fields")
	return cmd
}

// catalogueFilterError says where this filter's fields are listed.
func catalogueFilterError(err error) error {
	var filter *predicate.Error
	if errors.As(err, &filter) {
		return hint.With(err, "iotape catalogue find --fields lists the fields")
	}
	return err
}

func newCatalogueList(c *cli.Console) *cobra.Command {
	var q finding
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the tapes of a catalogue",
		Long:    `List shows all tapes, in the form of iotape catalogue find.`,
		Example: `  iotape catalogue list --sort duration_ns --reverse --limit 10`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return q.show(cmd.Context(), c, nil) },
	}
	q.add(cmd)
	return cmd
}

func newCatalogueRemove(c *cli.Console) *cobra.Command {
	var where catalogueFlag
	cmd := &cobra.Command{
		Use:         "rm TAPE...",
		Short:       "Remove tapes from a catalogue",
		Long:        `Rm removes the rows of tapes: by ID, name, or location. It does not remove the tapes.`,
		Example:     `  iotape catalogue rm --catalogue /srv/catalogue db7.tape`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: cli.Exits("0  removed", "1  no row matched", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cat, err := where.Open()
			if err != nil {
				return err
			}
			n, err := cat.Remove(cmd.Context(), args)
			if err != nil {
				return err
			}
			c.Say("%s removed", report.Plural(n, "row", "rows"))
			return cli.Ended(nil, n != 0)
		},
	}
	where.Add(cmd)
	return cmd
}

func newCatalogueCompact(c *cli.Console) *cobra.Command {
	var where catalogueFlag
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Join the files of each month into one",
		Long: `Compact makes one file of the rows of each month. This makes find faster. Add also
compacts a month that has many files.`,
		Example: `  iotape catalogue compact --catalogue /srv/catalogue`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cat, err := where.Open()
			if err != nil {
				return err
			}
			n, err := cat.Compact(cmd.Context())
			if err != nil {
				return err
			}
			c.Say("%s fewer", report.Plural(n, "file", "files"))
			return nil
		},
	}
	where.Add(cmd)
	return cmd
}

func newCatalogueCheck(c *cli.Console) *cobra.Command {
	var where catalogueFlag
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Compare a catalogue with its tapes",
		Long: `Check reads every file of the catalogue. It reports files that cannot be read, tapes
that are there twice, and tapes on this machine that are missing or differ from those
that were added. It does not read tapes in an object store.`,
		Example:     `  iotape catalogue check --catalogue /srv/catalogue`,
		Args:        cobra.NoArgs,
		Annotations: cli.Exits("0  no problem was found", "1  problems were found", "2  could not be done"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cat, err := where.Open()
			if err != nil {
				return err
			}
			k, err := cat.Check(cmd.Context())
			if err != nil {
				return err
			}
			for _, p := range k.Problems {
				c.Say("%s", p)
			}
			c.Say("%s in %s, %d not looked at; %s", report.Plural(k.Rows, "tape", "tapes"),
				report.Plural(k.Files, "file", "files"), k.Elsewhere,
				report.Plural(len(k.Problems), "problem", "problems"))
			return cli.Ended(nil, len(k.Problems) == 0)
		},
	}
	where.Add(cmd)
	return cmd
}
