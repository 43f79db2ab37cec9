package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"iotape/report"
	"iotape/store"
	"iotape/trace"
)

func newQuery(c *console) *cobra.Command {
	var asCSV, asJSON bool
	cmd := &cobra.Command{
		Use:   "query TAPE... SQL",
		Short: "Ask with SQL",
		Long: `Query runs one SQL statement (of DuckDB) over the tables events, processes and
files of one or more tapes. The tables are the Parquet files in the tape; they are
made first if they are missing. The statement can read nothing else.`,
		Example: `  iotape query git.tape "SELECT op, count(*), sum(bytes) FROM events GROUP BY op ORDER BY 3 DESC"
  iotape query git.tape "DESCRIBE events"
  iotape query --csv a.tape b.tape "SELECT * FROM files" > files.csv`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			format := store.Table
			switch {
			case asCSV:
				format = store.CSV
			case asJSON:
				format = store.JSON
			}
			var tapes []*trace.Tape
			for _, path := range args[:len(args)-1] {
				t, err := openTape(cmd.Context(), path)
				if err != nil {
					return err
				}
				defer t.Close()
				if err := indexIfNeeded(cmd.Context(), c, t); err != nil {
					return err
				}
				tapes = append(tapes, t)
			}
			rows, err := store.Query(cmd.Context(), tapes, args[len(args)-1], nil)
			if err != nil {
				return err
			}
			defer rows.Close()
			return c.print(func(w *bufio.Writer) error {
				_, err := store.Render(w, rows, format)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asCSV, "csv", false, "comma-separated values with a header")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	cmd.MarkFlagsMutuallyExclusive("json", "csv")
	return cmd
}

func indexIfNeeded(ctx context.Context, c *console, t *trace.Tape) error {
	if store.Indexed(t) == nil {
		return nil
	}
	return index(ctx, c, t)
}

// index derives the Parquet files of a tape.
func index(ctx context.Context, c *console, t *trace.Tape) error {
	progress := c.progress(report.Count)
	defer progress.Done()
	err := store.Index(ctx, t, func(done, total int64) { progress.Update("indexing", done, total) })
	if err != nil {
		return fmt.Errorf("index %s: %w", t.Name(), err)
	}
	return nil
}

func newIndex(c *console) *cobra.Command {
	return &cobra.Command{
		Use:   "index TAPE...",
		Short: "Make or remake the Parquet files of a tape",
		Long: `Index derives events.parquet, processes.parquet and files.parquet from a tape,
and replaces those that are there. iotape query reads them, and so does every
program that reads Parquet.`,
		Example: `  iotape index git.tape
  python3 -c 'import pandas; print(pandas.read_parquet("git.tape/files.parquet"))'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var errs []error
			for _, path := range args {
				t, err := openTape(cmd.Context(), path)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				if err := index(cmd.Context(), c, t); err != nil {
					errs = append(errs, err)
				}
				t.Close()
			}
			return errors.Join(errs...)
		},
	}
}
