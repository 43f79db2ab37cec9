// SPDX-License-Identifier: Apache-2.0

// Package checked writes what checking a tape found, for people and for programs.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package checked

import (
	"fmt"
	"io"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/trace"
)

// output is the JSON of a report; fields are only ever added.
type output struct {
	Version      int      `json:"version"`
	OK           bool     `json:"ok"`
	Files        int      `json:"files"`
	Bytes        int64    `json:"bytes"`
	Events       uint64   `json:"events"`
	Chunks       uint64   `json:"chunks"`
	MissingBytes int64    `json:"missing_bytes"`
	Notes        []string `json:"notes"`
	Damage       []damage `json:"damage"`
	More         uint64   `json:"more"`
}

type damage struct {
	File    string `json:"file"`
	Offset  int64  `json:"offset"`
	Derived bool   `json:"derived"`
	Error   string `json:"error"`
}

// WriteJSON writes a report as one object.
func WriteJSON(w io.Writer, r *trace.CheckReport) error {
	v := output{1, r.OK(), r.Files, r.Bytes, r.Events, r.Chunks, r.Missing, append([]string{}, r.Notes...), []damage{},
		r.More}
	for _, d := range r.Damage {
		v.Damage = append(v.Damage, damage{d.File, d.Offset, d.Derived, d.Err.Error()})
	}
	return jsonout.Object(w, v)
}

// WriteText writes a report for people.
func WriteText(w io.Writer, r *trace.CheckReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d files, %s, %s events, %s chunks of content\n", r.Files, report.Bytes(uint64(r.Bytes)),
		report.Count(r.Events), report.Count(r.Chunks))
	if r.Missing > 0 {
		fmt.Fprintf(&b, "%s of content were not recorded\n", report.Bytes(uint64(r.Missing)))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", report.OneLine(n))
	}
	for _, d := range r.Damage {
		where := d.File
		if d.Offset >= 0 {
			where += fmt.Sprintf(" at %d", d.Offset)
		}
		derived := ""
		switch {
		case d.File == trace.AnnotationsName:
			derived = " (iotape annotate makes it anew)"
		case d.File == trace.InitialName || d.File == trace.OrderName:
			derived = " (remove it: a replay makes it anew)"
		case d.Derived:
			derived = " (iotape index rebuilds it)"
		}
		fmt.Fprintf(&b, "damaged: %s: %s%s\n", report.Printable(where), report.OneLine(d.Err.Error()), derived)
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "damaged: %s more\n", report.Count(r.More))
	}
	if r.OK() {
		fmt.Fprintln(&b, "ok")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
