// SPDX-License-Identifier: Apache-2.0

package throttlerun

import (
	"context"

	"github.com/iotape/iotape/causal/throttle/hosts"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/record/session"
)

// RecordPart records a host's part of a run, and returns its tape.
func RecordPart(ctx context.Context, r sealing.Reporter, program string, t *hosts.Task, out string) (string, error) {
	b, err := session.ParseBackends(t.Backend)
	if err != nil {
		return "", err
	}
	p := &session.Plan{Tape: out, Backends: b, Seal: session.SealAfter, Signals: true, Reporter: r, Program: program}
	p.Capture = capture.Options{Command: t.Argv, Overflow: capture.OverflowBlock, Mmap: capture.MmapData}
	p.Capture.Content, _ = capture.ParseContent("full")
	return out, recordBounded(ctx, p, t.Budget)
}
