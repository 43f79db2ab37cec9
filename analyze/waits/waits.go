// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"fmt"
	"io"
	"strconv"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/trace"
)

type nodeJSON struct {
	Host      string `json:"host"`
	PID       uint32 `json:"pid"`
	TID       uint32 `json:"tid"`
	Comm      string `json:"comm"`
	ComputeNS int64  `json:"compute_ns"`
	StorageNS int64  `json:"storage_ns"`
	SyncNS    int64  `json:"sync_ns"`
	SleepNS   int64  `json:"sleep_ns"`
	DelayNS   int64  `json:"delay_ns"`
}

// WriteJSON writes what annotating found as one JSON object. Fields are only ever added.
func WriteJSON(w io.Writer, t *trace.Tape, s *causal.Summary) error {
	v := struct {
		Version int               `json:"version"`
		Events  uint64            `json:"events"`
		Found   map[string]uint64 `json:"found"`
		Waits   uint64            `json:"waits"`
		Losses  uint64            `json:"loss_marks"`
		Elapsed int64             `json:"elapsed_ns"`
		Explain int64             `json:"explained_ns"`
		Path    Path              `json:"path"`
		Nodes   []nodeJSON        `json:"nodes"`
	}{1, s.Events, map[string]uint64{}, s.Waits, s.Losses, s.ElapsedNS, s.ExplainedNS, Path(s.Path), []nodeJSON{}}
	for r, n := range s.Reasons {
		v.Found[r.String()] = n
	}
	for _, n := range s.Nodes {
		v.Nodes = append(v.Nodes,
			nodeJSON{t.Host(n.Host).Host, n.PID, n.TID, n.Comm, n.Compute, n.Storage, n.Sync, n.Sleep, n.Delay})
	}
	return jsonout.Object(w, v)
}

// Path is what the explained time is made of.
type Path struct {
	Compute int64 `json:"compute_ns"`
	Storage int64 `json:"storage_ns"`
	Sleep   int64 `json:"sleep_ns"`
}

// WriteExplained says how much of the run's time the annotations explain, and by what.
func WriteExplained(w io.Writer, s *causal.Summary) {
	p := &s.Path
	fmt.Fprintf(w, "they explain %s of the %s that the run took: %s of computing, %s of storage and %s of sleep, one "+
		"after the other\n",
		report.Duration(s.ExplainedNS), report.Duration(s.ElapsedNS), report.Duration(p.Compute),
		report.Duration(p.Storage), report.Duration(p.Sleep))
}

// WriteText writes what annotating found for people.
func WriteText(w io.Writer, t *trace.Tape, s *causal.Summary) error {
	found, why := uint64(0), ""
	for r, n := range s.Reasons {
		found += n
		why += fmt.Sprintf(", %s %s", report.Count(n), r)
	}
	if why != "" {
		why = " (" + why[2:] + ")"
	}
	fmt.Fprintf(w, "%s events of %s: %s between them%s, %s after the reduction\n", report.Count(s.Events),
		report.Plural(len(s.Nodes), "thread", "threads"),
		report.Plural(found, "dependency", "dependencies"), why, report.Count(s.Waits))
	if s.ElapsedNS > 0 {
		WriteExplained(w, s)
	}
	if s.Losses > 0 {
		fmt.Fprintf(w, "events were lost in %s: dependencies may be missing\n",
			report.Plural(s.Losses, "place", "places"))
	}
	fmt.Fprintln(w)
	table := report.Table{Head: []string{"pid", "tid", "computing", "storage", "waiting", "asleep",
		"delayed", "command"}, Right: 7}
	if len(t.Manifest().Hosts) > 1 {
		table.Head[7] = "host: command"
	}
	for _, n := range s.Nodes {
		name := report.Printable(n.Comm)
		if len(t.Manifest().Hosts) > 1 {
			name = report.Printable(t.Host(n.Host).Host) + ": " + name
		}
		table.Add(strconv.Itoa(int(n.PID)), strconv.Itoa(int(n.TID)), report.Duration(n.Compute),
			report.Duration(n.Storage),
			report.Duration(n.Sync), report.Duration(n.Sleep), report.Duration(n.Delay), name)
	}
	return table.Write(w)
}
