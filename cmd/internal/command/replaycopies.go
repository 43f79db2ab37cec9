// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"io"

	"github.com/iotape/iotape/analyze/replayed"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/compare"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/trace"
)

// copiesOf says how several copies are replayed at once.
type copiesOf struct {
	o      *replay.Options
	n      int
	html   string
	asJSON bool
}

// replayCopies replays a tape several times at once and prints what came of it. done is called
// before anything is printed.
func replayCopies(ctx context.Context, c *cli.Console, t *trace.Tape, x *copiesOf, done func()) error {
	if x.o.Log != nil || x.o.Team != nil || x.html != "" {
		return cli.Usage(errors.New("--copies cannot be used with --log, --hosts or --html"))
	}
	all, err := replay.RunCopies(ctx, t, x.o, x.n)
	done()
	if err != nil {
		return replayed.Interrupted(ctx, err)
	}
	return c.Result(cli.Either(x.asJSON, func(w io.Writer) error { return replayed.WriteCopiesJSON(w, all) },
		func(w io.Writer) error { return replayed.WriteCopies(w, all, x.o, c.Style(c.Out)) }), all.OK())
}

// differing is what the progress of a replay shows of differences so far.
func differing(n uint64) string {
	if n == 0 {
		return ""
	}
	return report.Count(n) + " differ"
}

// writePage writes the page of a replay to a file, if it has a name. before is what child processes
// had used before the replay.
func writePage(name string, t *trace.Tape, rep *replay.Report, o *replay.Options, before replayed.Usage) error {
	if name == "" {
		return nil
	}
	r := replayed.NewComparison(t)
	var run compare.Run
	run, r.Recorded = replayed.RunOf(rep, o, before)
	r.Targets = []compare.Target{{Name: "replayed", Runs: []compare.Run{run}}}
	return wholefile.Write(name, func(w io.Writer) error { return r.Page().HTML(w, nil) })
}
