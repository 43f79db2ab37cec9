// SPDX-License-Identifier: Apache-2.0

package throttlerun

import (
	"fmt"
	"io"
	"slices"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/waits"
	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/internal/jsonout"
)

// maxShown is how many differences of the runs are listed.
const maxShown = 20

// WriteText writes what the experiment on a tape found for people.
func (o *Outcome) WriteText(w io.Writer, tape string) error {
	r, s := o.Result, o.Summary
	fmt.Fprintf(w, "%s: %s between calls, %s contradicted; with what the tape proves, %s in %s\n",
		report.Plural(len(o.Runs)-1, "node was held", "nodes were held"),
		report.Plural(r.Found, "dependency", "dependencies"), report.Count(uint64(r.Refuted)),
		report.Plural(s.Waits, "wait", "waits"), tape)
	if s.ElapsedNS > 0 {
		waits.WriteExplained(w, s)
	}
	if n := len(r.Barriers); n > 0 {
		fmt.Fprintf(w, "%s recognised: all nodes wait for all\n", report.Plural(n, "barrier", "barriers"))
	}
	fmt.Fprintln(w)
	table := report.Table{Head: []string{"node", "calls", "held", "for", "waited for", "waits", "command"},
		Left: 1, Right: 6}
	for _, n := range r.Nodes {
		held, took := "–", "–"
		if n.Period > 0 {
			held, took = report.Count(uint64(n.Holds)), report.Duration(n.HeldNS)
		}
		table.Add(n.Name, report.Count(uint64(n.Calls)), held, took, report.Count(uint64(n.WaitedFor)),
			report.Count(uint64(n.Waits)), report.Printable(n.Comm))
	}
	if err := table.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for i, diff := range r.Differ {
		if i == maxShown {
			fmt.Fprintf(w, "and %s more\n", report.Count(uint64(len(r.Differ)-i)))
			break
		}
		fmt.Fprintf(w, "the runs differ: %s\n", report.Printable(diff.String()))
	}
	for _, s := range slices.Concat(r.GaveUp, o.Failed) {
		fmt.Fprintln(w, report.Printable(s))
	}
	fmt.Fprintf(w, "next: %s\n", o.Next)
	return nil
}

// WriteJSON writes what was found; version is that of its fields, which are only ever
// added to.
func (o *Outcome) WriteJSON(w io.Writer) error {
	r, s := o.Result, o.Summary
	type runJSON struct {
		Held      string `json:"held"`
		Period    int    `json:"period"`
		ElapsedNS int64  `json:"elapsed_ns"`
		Abandoned string `json:"abandoned"`
	}
	v := struct {
		Version  int                   `json:"version"`
		Found    int                   `json:"found"`
		Refuted  int                   `json:"refuted"`
		Waits    uint64                `json:"waits"`
		Barriers int                   `json:"barriers"`
		Elapsed  int64                 `json:"elapsed_ns"`
		Explain  int64                 `json:"explained_ns"`
		Path     waits.Path            `json:"path"`
		Nodes    []throttle.NodeResult `json:"nodes"`
		Runs     []runJSON             `json:"runs"`
		Differ   []string              `json:"differ"`
		Problems []string              `json:"problems"`
		Next     *throttle.Suggestion  `json:"next"`
	}{Version: 1, Found: r.Found, Refuted: r.Refuted, Waits: s.Waits, Barriers: len(r.Barriers), Elapsed: s.ElapsedNS,
		Explain: s.ExplainedNS, Path: waits.Path(s.Path),
		Nodes: r.Nodes, Differ: []string{}, Problems: slices.Concat([]string{}, r.GaveUp, o.Failed), Next: o.Next}
	for _, run := range o.Runs {
		v.Runs = append(v.Runs, runJSON{run.Held, run.Period, run.Elapsed, run.Abandoned})
	}
	for _, diff := range r.Differ {
		v.Differ = append(v.Differ, diff.String())
	}
	return jsonout.Object(w, v)
}
