// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/record/redact"
	"github.com/iotape/iotape/trace"
)

// checkRedact returns what of the plan would write secrets that Redact is to mask.
func (p *Plan) checkRedact() error {
	switch {
	case p.Redact == nil:
		return nil
	case p.Capture.Content.Hashes():
		return errors.New("--redact cannot mask content of which only hashes or signatures are kept: they are made " +
			"before; use --content full, head:N or none")
	case len(p.Snapshots) > 0:
		return errors.New("--redact does not mask what --snapshot stores of files; leave one of them out")
	}
	return nil
}

// markRedacted says in the head of a stream what masks its records, and masks what it has itself.
func (p *Plan) markRedacted(h *trace.Head) {
	if p.Redact != nil {
		h.Redact, h.Command = p.Redact.String(), p.Redact.Strings(h.Command)
	}
}

// redacted returns a sink that masks what the plan says. done tells note how much that was.
func (p *Plan) redacted(to trace.FrameSink, note func(format string, args ...any)) (s trace.FrameSink, done func()) {
	if p.Redact == nil {
		return to, func() {}
	}
	r := redact.NewSink(to, p.Redact)
	return r, func() {
		if n, bytes := r.Masked(); n > 0 {
			note("%s masked (%s)", report.Plural(n, "secret", "secrets"), report.Bytes(bytes))
		}
	}
}
