package main

import (
	"bufio"
	"strings"

	"github.com/spf13/cobra"

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
was done again, durability, conflicts between processes, balance, phases, processes
with what went from one to another, calls by file system, users, accesses, and sessions.

Without -o it prints text. Sections are ` + strings.Join(suite.IDs(), ", ") + `.`,
		Example: `  iotape report db.tape -o db.html
  iotape report db.tape --section durability,redundant
  iotape report db.tape --section access --json | jq .access.all`,
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  done", "1  done but for damaged parts of the tape", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, damaged, err := sections(cmd.Context(), c, args[0], &o)
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
