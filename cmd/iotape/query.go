// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
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
}

func newQuery(c *cli.Console) *cobra.Command {
	var q querying
	cmd := &cobra.Command{
		Use:   "query TAPE... SQL",
		Short: "Query tapes with SQL",
		Long: `Query runs one SQL statement (of DuckDB) over one or more tapes, or files of other
formats. The tables are events, processes, files, opens and content. They are the Parquet
files of the tape (its index), which query makes first if they are missing. Each table has
the column tape. The statement can read nothing else. docs/query.md describes the columns,
and has examples.`,
		Example: `  iotape query git.tape "SELECT op, count(*), sum(bytes) FROM events GROUP BY op ORDER BY 3 DESC"
  iotape query git.tape "DESCRIBE events"
  iotape query --csv -o files.csv a.tape b.tape "SELECT * FROM files"
  iotape query --parquet opens.parquet a.tape "SELECT * FROM opens WHERE NOT sequential"`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			tapes, closeAll, err := cli.OpenTapes(cmd.Context(), args[:len(args)-1])
			defer closeAll()
			if err != nil {
				return err
			}
			for _, t := range tapes {
				if err := cli.IndexIfNeeded(cmd.Context(), c, t); err != nil {
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

func newIndex(c *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "index TAPE...",
		Short: "Make or replace the Parquet files of a tape",
		Long: `Index makes events.parquet, processes.parquet, files.parquet, opens.parquet and
content.parquet of a tape, and replaces existing ones. iotape query reads these files. So
can all programs that read Parquet.`,
		Example: `  iotape index git.tape
  python3 -c 'import pandas; print(pandas.read_parquet("git.tape/files.parquet"))'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var errs []error
			for _, path := range args {
				t, err := cli.OpenTape(cmd.Context(), path)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				if err := cli.Index(cmd.Context(), c, t); err != nil {
					errs = append(errs, err)
				}
				t.Close()
			}
			return errors.Join(errs...)
		},
	}
}
