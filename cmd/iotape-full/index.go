// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/trace"
)

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
				if err := index(cmd.Context(), c, t); err != nil {
					errs = append(errs, err)
				}
				t.Close()
			}
			return errors.Join(errs...)
		},
	}
}

// newIndexTape is for iotape, which does not have the engine: it writes what went wrong, and nothing else, on
// the standard output.
func newIndexTape(c *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "index-tape TAPE",
		Short: "Make the Parquet files of a new tape",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := trace.Open(args[0])
			if err == nil {
				err = errors.Join(index(cmd.Context(), c, t), t.Close())
			}
			if err != nil {
				fmt.Fprint(c.Out, err)
				return cli.Status(cli.ExitFailed, nil)
			}
			return nil
		},
	}
}

// indexIfNeeded derives the Parquet files of a tape that has none: in a temporary directory if the tape
// cannot be written to.
func indexIfNeeded(ctx context.Context, c *cli.Console, t *trace.Tape) error {
	if store.Indexed(t) == nil {
		return nil
	}
	err := index(ctx, c, t)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		if err := t.DeriveElsewhere(); err != nil {
			return err
		}
		return index(ctx, c, t)
	}
	return err
}

// index derives the Parquet files of a tape.
func index(ctx context.Context, c *cli.Console, t *trace.Tape) error {
	progress := c.Progress(report.Count)
	defer progress.Done()
	err := store.Index(ctx, t, func(done, total int64) { progress.Update("indexing", done, total) })
	if err != nil {
		return fmt.Errorf("index %s: %w", t.Name(), err)
	}
	return nil
}
