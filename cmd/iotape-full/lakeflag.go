// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/store/lake"
	"github.com/iotape/iotape/trace"
)

// The variables that name the lake, and its REST catalogue, where flags do not.
const (
	lakeVariable          = "IOTAPE_LAKE"
	lakeCatalogueVariable = "IOTAPE_LAKE_CATALOGUE"
)

// lakeFlag is where the lake is, and how much memory its engine may use.
type lakeFlag struct {
	Where     string
	catalogue string
	memory    cli.Size
	findings  int64
}

// AddFindings adds the flag of commands that add tapes.
func (f *lakeFlag) AddFindings(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&f.findings, "lake-findings", lake.DefaultFindings,
		"look for the findings of iotape flow in tapes of at most `N` events; 0 means in none")
}

// Add adds the flags.
func (f *lakeFlag) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Where, "lake", "", "the directory, or s3://BUCKET/PREFIX, `WHERE` the lake is (default $"+
		lakeVariable+")")
	cmd.Flags().StringVar(&f.catalogue, "lake-catalogue", "",
		"the `URL` of the Iceberg REST catalogue that has its tables (default $"+lakeCatalogueVariable+
			"; without one, the catalogue is in the lake)")
	f.memory = 1 << 30
	cmd.Flags().Var(&f.memory, "memory", "the most memory that the query engine uses: 512M, 8G")
}

// Given reports whether the flag or the environment names a lake.
func (f *lakeFlag) Given() bool { return f.Where != "" || os.Getenv(lakeVariable) != "" }

// Open opens the lake that the flag or the environment names. done ends its progress.
func (f *lakeFlag) Open(ctx context.Context, c *cli.Console) (l *lake.Lake, done func(), err error) {
	where := cmp.Or(f.Where, os.Getenv(lakeVariable))
	if where == "" {
		return nil, nil, cli.Usage(errors.New("no lake is given: name its directory or bucket with --lake"))
	}
	if f.memory <= 0 {
		return nil, nil, cli.Usage(errors.New("--memory must be more than 0"))
	}
	findings := f.findings
	if findings <= 0 {
		findings = -1
	}
	progress := c.Progress(report.Count)
	l, err = lake.Open(ctx, where, &lake.Options{
		Catalogue: cmp.Or(f.catalogue, os.Getenv(lakeCatalogueVariable)),
		Query:     &store.QueryOptions{MemoryBytes: int64(f.memory)},
		Suite:     suite.Options{CallName: stracetext.CallName},
		Findings:  findings,
		Progress:  progress.Update,
	})
	return l, progress.Done, err
}

// addTapeToLake adds a tape, and reports whether it is new.
func addTapeToLake(ctx context.Context, c *cli.Console, l *lake.Lake, path, location string) (bool, error) {
	t, err := trace.Open(path)
	if err != nil {
		return false, err
	}
	defer t.Close()
	if err := indexIfNeeded(ctx, c, t); err != nil {
		return false, err
	}
	return l.Add(ctx, t, location)
}

// Range is the range of rows that flags select.
type Range struct {
	from, to Moment
	hosts    []string
	path     string
}

// Add adds the flags.
func (r *Range) Add(cmd *cobra.Command) {
	r.AddTimes(cmd)
	cmd.Flags().StringVar(&r.path, "path", "", "with --lake: events, opens and files of the file `NAME`, or of those "+
		"whose names begin so, if it ends with *")
}

// AddTimes adds the flags of times and hosts.
func (r *Range) AddTimes(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(&r.from, "from", "with --lake: rows from this time on: 2026-11-22, 2026-11-22T10:00:00Z")
	f.Var(&r.to, "to", "with --lake: rows before this time")
	f.StringSliceVar(&r.hosts, "host", nil, "with --lake: rows of the hosts `NAME,…`; repeatable")
}

// Unused returns what is wrong if there is no lake.
func (r *Range) Unused() error {
	if !time.Time(r.from).IsZero() || !time.Time(r.to).IsZero() || len(r.hosts) > 0 || r.path != "" {
		return cli.Usage(errors.New("--from, --to, --host and --path are for --lake"))
	}
	return nil
}

// Range returns the range.
func (r *Range) Range() (*lake.Range, error) {
	from, to := time.Time(r.from), time.Time(r.to)
	if !from.IsZero() && !to.IsZero() && !to.After(from) {
		return nil, cli.Usage(errors.New("--to must be after --from"))
	}
	return &lake.Range{From: from, To: to, Hosts: r.hosts, Path: r.path}, nil
}

// Moment is a time on the command line, in UTC if it does not say otherwise.
type Moment time.Time

// Set parses a time.
func (m *Moment) Set(text string) error {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02 15:04:05", "2006-01-02T15:04:05",
		"2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1970 && t.Year() < 2250 {
			*m = Moment(t.UTC())
			return nil
		}
	}
	return fmt.Errorf("%q is no time such as 2026-11-22 or 2026-11-22T10:00:00Z", text)
}

// String implements pflag.Value.
func (m *Moment) String() string {
	if time.Time(*m).IsZero() {
		return ""
	}
	return time.Time(*m).Format(time.RFC3339Nano)
}

// Type names the kind of value in the help.
func (*Moment) Type() string { return "TIME" }
