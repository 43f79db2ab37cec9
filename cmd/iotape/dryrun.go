package main

import (
	"bufio"
	"context"
	"encoding/json"

	"github.com/iotape/iotape/analyze/replayed"
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
		replayed.WritePlan(w, p)
		return nil
	})
	if err == nil && p.Lacking() {
		return &statusError{Status: exitFound}
	}
	return err
}
