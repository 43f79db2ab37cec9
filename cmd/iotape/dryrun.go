package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/trace"
)

// dryRun says what a replay would do.
func dryRun(ctx context.Context, c *console, t *trace.Tape, o *replay.Options, asJSON bool) error {
	p, err := replay.DryRun(ctx, t, o)
	if err != nil {
		return err
	}
	err = c.print(func(w *bufio.Writer) error {
		if asJSON {
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			return enc.Encode(p)
		}
		writePlan(w, p)
		return nil
	})
	if err == nil && p.Lacking() {
		return &statusError{Status: exitFound}
	}
	return err
}

func writePlan(w *bufio.Writer, p *replay.Plan) {
	t := report.Table{Head: []string{"calls", "operation", "", "why not"}, Right: 1}
	var made uint64
	for _, op := range p.Ops {
		if op.Made {
			made += op.Count
			t.Add(report.Count(op.Count), op.Op, "made", "")
		} else {
			t.Add(report.Count(op.Count), op.Op, "not made", report.Printable(op.Reason))
		}
	}
	fmt.Fprintf(w, "%s events; %s calls would be made\n\n", report.Count(p.Events), report.Count(made))
	t.Write(w)
	fmt.Fprintln(w)
	n := report.Table{Head: []string{"needed", "", "the target"}, Right: 1}
	for _, need := range p.Needs {
		n.Add(report.Count(need.Count), need.What, report.Printable(need.Lacks))
	}
	n.Write(w)
}
