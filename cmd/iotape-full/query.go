// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/trace"
)

// querying is what to ask, and where the answer goes.
type querying struct {
	csv, json       bool
	parquet, output string
	lake            lakeFlag
	rows            Range
}

func newQuery(c *cli.Console) *cobra.Command {
	var q querying
	cmd := &cobra.Command{
		Use:   "query [TAPE...] SQL",
		Short: "Query tapes with SQL",
		Long: `Query runs one SQL statement (of DuckDB) over one or more tapes, or files of other
formats. The tables are events, processes, files, opens and content. They are the Parquet
files of the tape (its index), which query makes first if they are missing. Each table has
the column tape. The statement can read nothing else. docs/query.md describes the columns,
and has examples.

With --lake, query asks the tables of a lake instead of tapes (docs/lake.md). The flags
--from, --to, --host and --path select rows. Files without such rows are not read.`,
		Example: `  iotape query git.tape "SELECT op, count(*), sum(bytes) FROM events GROUP BY op ORDER BY 3 DESC"
  iotape query git.tape "DESCRIBE events"
  iotape query --csv -o files.csv a.tape b.tape "SELECT * FROM files"
  iotape query --parquet opens.parquet a.tape "SELECT * FROM opens WHERE NOT sequential"
  iotape query --lake /srv/lake --host db7 --from 2026-11-22 "SELECT op, count(*) FROM events GROUP BY op"`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.lake.Where != "" {
				return q.runLake(cmd.Context(), c, args)
			}
			if err := q.checkTapes(cmd, args); err != nil {
				return err
			}
			tapes, closeAll, err := cli.OpenTapes(cmd.Context(), args[:len(args)-1])
			defer closeAll()
			if err != nil {
				return err
			}
			for _, t := range tapes {
				if err := indexIfNeeded(cmd.Context(), c, t); err != nil {
					return err
				}
			}
			return q.run(cmd.Context(), c, tapes, args[len(args)-1])
		},
	}
	f := cmd.Flags()
	f.BoolVar(&q.csv, "csv", false, "print comma-separated values with a header")
	f.BoolVar(&q.json, "json", false, "print one JSON object per line")
	f.StringVar(&q.parquet, "parquet", "", "write the result to the Parquet file `FILE`, and print nothing")
	f.StringVarP(&q.output, "output", "o", "",
		"write the result to `FILE`; query replaces FILE when the result is complete")
	q.lake.Add(cmd)
	q.rows.Add(cmd)
	cmd.MarkFlagsMutuallyExclusive("json", "csv", "parquet")
	cmd.MarkFlagsMutuallyExclusive("output", "parquet")
	return cmd
}

func (q *querying) run(ctx context.Context, c *cli.Console, tapes []*trace.Tape, query string) error {
	if q.parquet != "" {
		_, err := store.Export(ctx, tapes, query, q.parquet, nil)
		return err
	}
	rows, err := store.Query(ctx, tapes, query, nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	return q.show(c, rows)
}

// checkTapes returns what is wrong with a command line without a lake.
func (q *querying) checkTapes(cmd *cobra.Command, args []string) error {
	if len(args) < 2 {
		return cli.Usage(errors.New("query needs a TAPE, or --lake WHERE, and a statement"))
	}
	for _, name := range []string{"from", "to", "host", "path", "memory", "lake-catalogue"} {
		if cmd.Flags().Changed(name) {
			return cli.Usage(fmt.Errorf("--%s is for --lake", name))
		}
	}
	return nil
}

// runLake asks a lake.
func (q *querying) runLake(ctx context.Context, c *cli.Console, args []string) error {
	if len(args) != 1 {
		return cli.Usage(errors.New("--lake takes one statement, and no TAPE"))
	}
	if q.parquet != "" {
		return cli.Usage(errors.New("--parquet is for tapes; use --csv or --json with --lake"))
	}
	r, err := q.rows.Range()
	if err != nil {
		return err
	}
	l, done, err := q.lake.Open(ctx, c)
	if err != nil {
		return err
	}
	defer done()
	rows, err := l.Select(ctx, args[0], r)
	if err != nil {
		return noLake(err)
	}
	defer rows.Close()
	done()
	return q.show(c, rows.Rows)
}

// show writes the result.
func (q *querying) show(c *cli.Console, rows *store.Rows) error {
	render := func(w io.Writer) error {
		_, err := store.Render(w, rows, tableFormat(q.csv, q.json))
		return err
	}
	if q.output == "" {
		return c.Result(render, true)
	}
	return wholefile.Write(q.output, render)
}

// tableFormat returns how the rows of a query are written.
func tableFormat(csv, json bool) store.Format {
	switch {
	case csv:
		return store.CSV
	case json:
		return store.JSON
	}
	return store.Table
}
