// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"github.com/iotape/iotape/analyze/replayed"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/trace"
)

// dryRun says what a replay would do.
func dryRun(ctx context.Context, c *cli.Console, t *trace.Tape, o *replay.Options, asJSON bool) error {
	p, err := replay.DryRun(ctx, t, o)
	if err != nil {
		return err
	}
	write := cli.Either(asJSON, replayed.WritePlanJSON, replayed.WritePlan)
	return c.Result(func(w io.Writer) error { return write(w, p) }, !p.Lacking())
}
