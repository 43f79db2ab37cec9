package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

func newCheck(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check TAPE",
		Short: "Verify a tape: every checksum, count and reference",
		Long: `Check reads a whole tape and verifies every checksum, hash, count and reference in
it. It prints what is damaged and where; files that can be rebuilt from the others
are told apart (iotape index does that).`,
		Example: `  iotape check git.tape
  iotape check git.tape --json | jq .damage`,
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  nothing is wrong", "1  the tape is damaged", "2  could not be checked"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTape(cmd.Context(), args[0])
			if errors.Is(err, trace.ErrCorrupt) || errors.Is(err, trace.ErrTruncated) {
				return &statusError{exitFound, err}
			}
			if err != nil {
				return err
			}
			defer t.Close()
			rep, err := c.check(cmd.Context(), t)
			if err != nil {
				return err
			}
			if err := c.print(func(w *bufio.Writer) error { return writeCheck(w, rep, asJSON) }); err != nil {
				return err
			}
			if !rep.OK() {
				return &statusError{Status: exitFound}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

// check verifies a tape with its trees of files.
func (c *console) check(ctx context.Context, t *trace.Tape) (*trace.CheckReport, error) {
	progress := c.progress(report.Bytes)
	defer progress.Done()
	rep, err := t.Check(ctx, func(done, total int64) { progress.Update("checking", done, total) })
	if err != nil {
		return nil, err
	}
	return rep, seal.CheckTrees(ctx, t, rep)
}

// checkJSON is the output of check --json; fields are only ever added.
type checkJSON struct {
	Version      int          `json:"version"`
	OK           bool         `json:"ok"`
	Files        int          `json:"files"`
	Bytes        int64        `json:"bytes"`
	Events       uint64       `json:"events"`
	Chunks       uint64       `json:"chunks"`
	MissingBytes int64        `json:"missing_bytes"`
	Notes        []string     `json:"notes"`
	Damage       []damageJSON `json:"damage"`
	More         uint64       `json:"more"`
}

type damageJSON struct {
	File    string `json:"file"`
	Offset  int64  `json:"offset"`
	Derived bool   `json:"derived"`
	Error   string `json:"error"`
}

func writeCheck(w *bufio.Writer, r *trace.CheckReport, asJSON bool) error {
	if asJSON {
		v := checkJSON{1, r.OK(), r.Files, r.Bytes, r.Events, r.Chunks, r.Missing, append([]string{}, r.Notes...), []damageJSON{}, r.More}
		for _, d := range r.Damage {
			v.Damage = append(v.Damage, damageJSON{d.File, d.Offset, d.Derived, d.Err.Error()})
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	fmt.Fprintf(w, "%d files, %s, %s events, %s chunks of content\n", r.Files, report.Bytes(uint64(r.Bytes)), report.Count(r.Events), report.Count(r.Chunks))
	if r.Missing > 0 {
		fmt.Fprintf(w, "%s of content were not recorded\n", report.Bytes(uint64(r.Missing)))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", oneLine(n))
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
		case d.Derived:
			derived = " (iotape index rebuilds it)"
		}
		fmt.Fprintf(w, "damaged: %s: %s%s\n", report.Printable(where), oneLine(d.Err.Error()), derived)
	}
	if r.More > 0 {
		fmt.Fprintf(w, "damaged: %s more\n", report.Count(r.More))
	}
	if r.OK() {
		fmt.Fprintln(w, "ok")
	}
	return nil
}
