// SPDX-License-Identifier: Apache-2.0

package replayed

import (
	"fmt"
	"io"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/internal/term"
	"github.com/iotape/iotape/replay"
)

// WriteCopies writes what came of several replays at once: their times, the latencies of calls beside
// the recorded ones, and what WriteText writes of the first copy that differs.
func WriteCopies(w io.Writer, c *replay.Copies, o *replay.Options, style term.Style) error {
	var calls, lagging uint64
	var lag, lagMax int64
	differ, first := 0, -1
	for i, r := range c.Copies {
		calls += r.Replayed
		if t := r.Timing; t != nil {
			lag, lagMax, lagging = lag+t.LagMeanNS, max(lagMax, t.LagMaxNS), lagging+t.Lagging
		}
		if !r.OK() {
			if differ++; first < 0 {
				first = i
			}
		}
	}
	n := len(c.Copies)
	fmt.Fprintf(w, "replayed %s at once: %s calls made\n", report.Plural(n, "copy", "copies"), report.Count(calls))
	fmt.Fprintf(w, "calls went on for %s as recorded, and for %s here (%s to %s)\n", report.Duration(c.RecordedNS),
		report.Duration(c.MedianNS), report.Duration(c.MinNS), report.Duration(c.MaxNS))
	if o.Pace == replay.PaceRecorded && n > 0 {
		fmt.Fprintf(w, "calls were %s late on average, %s at most; %s of them a millisecond or more\n",
			report.Duration(lag/int64(n)), report.Duration(lagMax), report.Count(lagging))
	}
	t := report.Table{Left: 1, Head: []string{
		"call", "recorded", "p50", "p95", "p99", "max", "here", "p50", "p95", "p99", "max",
	}}
	for i := range c.Ops {
		o := &c.Ops[i]
		row := []string{o.Op}
		for _, l := range [...]*replay.Latency{&o.Recorded, &o.Replayed} {
			row = append(row, report.Count(l.Count), report.Duration(l.P50NS), report.Duration(l.P95NS),
				report.Duration(l.P99NS), report.Duration(l.MaxNS))
		}
		t.Add(row...)
	}
	t.Write(w)
	if first < 0 {
		if o.Checks != replay.CheckNone {
			fmt.Fprintln(w, style.Good("all copies agree with the recording"))
		}
		return nil
	}
	fmt.Fprintln(w, style.Bad(fmt.Sprintf("%s of %d copies differ; of copy %d:", report.Count(uint64(differ)), n,
		first+1)))
	return WriteText(w, c.Copies[first], o, style)
}

// WriteCopiesJSON writes the same as one JSON object, with the reports of all copies.
func WriteCopiesJSON(w io.Writer, c *replay.Copies) error {
	return jsonout.Object(w, struct {
		Version int  `json:"version"`
		OK      bool `json:"ok"`
		*replay.Copies
	}{1, c.OK(), c})
}
