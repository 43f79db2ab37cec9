// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/store/catalogue"
)

// catalogueVariable names the catalogue where --catalogue does not.
const catalogueVariable = "IOTAPE_CATALOGUE"

// catalogueFlag is where the catalogue is.
type catalogueFlag struct{ dir string }

// Add adds the flag.
func (f *catalogueFlag) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "catalogue", "", "the `DIR` of the catalogue (default $"+catalogueVariable+")")
}

// Open opens the catalogue that the flag or the environment names.
func (f *catalogueFlag) Open() (*catalogue.Catalogue, error) {
	dir := cmp.Or(f.dir, os.Getenv(catalogueVariable))
	if dir == "" {
		return nil, cli.Usage(errors.New("no catalogue is given: name its directory with --catalogue"))
	}
	return catalogue.Open(dir), nil
}

// addCatalogueRow adds the row of a tape, and says how many are new.
func addCatalogueRow(ctx context.Context, c *cli.Console, cat *catalogue.Catalogue, path, location string,
) (int, error) {
	progress := c.Progress(report.Count)
	defer progress.Done()
	return cat.AddTape(ctx, path, location, suite.Options{CallName: stracetext.CallName}, func(done, total uint64) {
		progress.Update("reading "+path, int64(done), int64(total))
	})
}
