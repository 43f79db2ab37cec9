// SPDX-License-Identifier: Apache-2.0

package tail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// Quick is how long a recorder that is watched may keep its records (capture.Options.Latency).
const Quick = 20 * time.Millisecond

// quietAfter is how long nothing may come of such a recorder before all is known to be there.
const quietAfter = 3 * Quick

// Limits are where a recording that is watched ends. What is recorded until it has ended is in its tape.
type Limits struct {
	Events uint64          // calls and signals that fit its filter; 0: as many as there are
	Until  *predicate.Expr // the first event that fits it and the filter is the last one; nil: there is none
}

// Live watches a recording while it is made: it prints its events, if o is not nil, up to the limits, and then calls
// stop. It returns with the recording's end.
func Live(ctx context.Context, in io.Reader, o *Options, l *Limits, stop func()) error {
	w := &live{limits: l, stop: stop}
	if o != nil {
		w.printer = newPrinter(o)
	} else {
		w.printer = newPrinter(&Options{Out: io.Discard, Note: func(string) {}, See: func(*event.Event) {}})
	}
	_, err := seal.Watch(ctx, in,
		&seal.Viewer{Started: w.head, Seen: w.event, Idle: w.printer.w.Flush, Quiet: quietAfter,
			Files: seal.Here})
	if flushErr := w.printer.w.Flush(); err == nil {
		err = flushErr
	}
	if errors.Is(err, trace.ErrTruncated) || errors.Is(err, trace.ErrEmpty) {
		err = nil // it could not begin, or not end: the recorder says why
	}
	if err != nil {
		return fmt.Errorf("print the recording: %w", err)
	}
	return nil
}

// live prints up to the limits.
type live struct {
	*printer
	limits *Limits
	until  *predicate.Matcher
	seen   uint64
	over   bool
	stop   func()
}

func (w *live) head(h *trace.Head) error {
	if err := w.printer.head(h); err != nil || w.limits.Until == nil {
		return err
	}
	g, err := slice.StreamFilter(h, w.limits.Until)
	if err != nil {
		return err
	}
	w.until = g.NewMatcher()
	return nil
}

func (w *live) event(ev *event.Event) error {
	if w.over {
		return nil
	}
	last := w.until != nil && w.until.Match(ev)
	if w.see(ev) {
		if err := w.print(ev); err != nil {
			return err
		}
		if ev.Kind == event.Call || ev.Kind == event.Signalled {
			w.seen++
		}
	}
	if last || w.limits.Events > 0 && w.seen >= w.limits.Events {
		w.over = true
		w.stop()
	}
	return nil
}
