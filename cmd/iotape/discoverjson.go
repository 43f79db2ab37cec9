package main

import (
	"bufio"
	"encoding/json"
	"slices"

	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/record/throttlerun"
)

// writeDiscoveredJSON writes what was found; version is that of its fields, which are only ever
// added to.
func writeDiscoveredJSON(w *bufio.Writer, o *throttlerun.Outcome) error {
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
		Path     pathJSON              `json:"path"`
		Nodes    []throttle.NodeResult `json:"nodes"`
		Runs     []runJSON             `json:"runs"`
		Differ   []string              `json:"differ"`
		Problems []string              `json:"problems"`
		Next     *throttle.Suggestion  `json:"next"`
	}{Version: 1, Found: r.Found, Refuted: r.Refuted, Waits: s.Waits, Barriers: len(r.Barriers), Elapsed: s.ElapsedNS, Explain: s.ExplainedNS, Path: pathJSON(s.Path),
		Nodes: r.Nodes, Differ: []string{}, Problems: slices.Concat([]string{}, r.GaveUp, o.Failed), Next: o.Next}
	for _, run := range o.Runs {
		v.Runs = append(v.Runs, runJSON{run.Held, run.Period, run.Elapsed, run.Abandoned})
	}
	for _, diff := range r.Differ {
		v.Differ = append(v.Differ, diff.String())
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
