// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web"
	"github.com/iotape/iotape/web/serve"
)

func newReport(c *cli.Console) *cobra.Command {
	var o suite.Options
	var asJSON bool
	var html string
	var noPicture bool
	cmd := &cobra.Command{
		Use:   "report TAPE...",
		Short: "Make a page of tables and pictures about tapes",
		Long: `Report shows what the recorded programs did to their storage. It computes the views that
docs/reports.md defines, in one pass: what ran and what the recording lacks, operations,
cost, overlap with computing, bandwidth, heat maps, latency, sizes, access patterns, files,
rankings, failures, repeated work, durability, conflicts between processes, balance,
phases, processes and the data that passed between them, calls by file system, users,
accesses, and sessions.

Of several TAPEs, report begins with what the flow of the data between them shows, and has
the other sections of each.

Report prints text. With -o it writes a page of HTML. Sections are ` + strings.Join(suite.IDs(), ", ") + `.`,
		Example: `  iotape report db.tape -o db.html
  iotape report client.tape server.tape -o both.html
  iotape report db.tape --section durability,redundant
  iotape report db.tape --section access --json | jq .access.all`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: cli.Exits("0  done", "1  done, except damaged parts of the tape", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tapes, closeAll, err := cli.OpenHosts(cmd.Context(), args)
			defer closeAll()
			if err != nil {
				return err
			}
			p, damaged, err := c.Sections(cmd.Context(), tapes, &o)
			if err != nil {
				return err
			}
			switch {
			case html != "" && !noPicture:
				err = writeReport(cmd.Context(), c, tapes, p, html)
			case html != "":
				err = wholefile.Write(html, func(w io.Writer) error { return p.HTML(w, nil) })
			case asJSON:
				err = c.Print(func(w *bufio.Writer) error { return p.JSON(w) })
			default:
				err = c.Print(func(w *bufio.Writer) error { return p.Text(w) })
			}
			return cli.Ended(err, damaged == 0)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&html, "output", "o", "", "write a page of HTML to `FILE`")
	f.BoolVar(&noPicture, "no-picture", false, "with -o: omit the picture, which needs two more passes over the tape")
	f.StringSliceVar(&o.Sections, "section", nil, "show only the sections `ID,…`")
	f.IntVar(&o.Top, "top", 10, "show `N` rows in tables that rank")
	f.BoolVar(&asJSON, "json", false, "print one JSON object with the numbers of the sections, times in ns")
	return cmd
}

// writeReport writes a report with the picture of its tapes.
func writeReport(ctx context.Context, c *cli.Console, tapes []*trace.Tape, p *page.Page, name string) error {
	progress := c.Progress(report.Count)
	defer progress.Done()
	s, err := serve.Scene(ctx, tapes, true, func(done, total uint64) {
		progress.Update("reading", int64(done), int64(total))
	})
	progress.Done()
	if err != nil {
		return err
	}
	defer s.Close()
	_ = s.Order() // the picture says why there are no arrows
	return wholefile.Write(name, func(w io.Writer) error { return web.WriteFile(w, p, s) })
}
