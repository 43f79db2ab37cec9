package main

import (
	"bufio"
	"strings"

	"github.com/spf13/cobra"

	"iotape/format/stracetext"
	"iotape/report"
	"iotape/report/suite"
)

func newReport(c *console) *cobra.Command {
	var o suite.Options
	var asJSON bool
	var html string
	cmd := &cobra.Command{
		Use:   "report TAPE",
		Short: "What the programs did to their storage: a page of tables and pictures",
		Long: `Report computes the views of a tape that docs/reports.md defines, in one pass: what ran
and what the recording lacks, operations, cost, overlap with computing, bandwidth, heat
maps, latency, sizes, access patterns, files, the most of everything, failures, work that
was done again, durability, conflicts between processes, balance, phases, and processes
with what went from one to another.

Without -o it prints text. Sections are ` + strings.Join(suite.IDs(), ", ") + `.`,
		Example: `  iotape report db.tape -o db.html
  iotape report db.tape --section durability,redundant
  iotape report db.tape --section access --json | jq .access.all`,
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  done", "1  done but for damaged parts of the tape", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			progress := c.progress(report.Count)
			o.CallName = stracetext.CallName
			o.Progress = func(done uint64) { progress.Update("reading", int64(done), int64(t.Manifest().Counts.Events)) }
			p, damaged, err := suite.Collect(cmd.Context(), t, &o)
			progress.Done()
			if err != nil {
				return err
			}
			switch {
			case html != "":
				err = writePage(p, html)
			case asJSON:
				err = c.print(func(w *bufio.Writer) error { return p.JSON(w) })
			default:
				err = c.print(func(w *bufio.Writer) error { return p.Text(w) })
			}
			if err == nil && damaged > 0 {
				return &statusError{Status: exitFound}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVarP(&html, "output", "o", "", "write a page to `FILE`")
	f.StringSliceVar(&o.Sections, "section", nil, "only the sections `ID,…`")
	f.IntVar(&o.Top, "top", 10, "tables that rank have `N` rows")
	f.BoolVar(&asJSON, "json", false, "one JSON object with the sections' numbers, times in ns")
	return cmd
}
