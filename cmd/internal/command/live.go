// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/format/tail"
)

// livePrint is what a recording prints while it is made.
type livePrint struct {
	on    bool
	to    string // a file; "": standard error
	count bool   // sums at the end, and no lines
	clock cli.ClockFlags
	o     tail.Options
}

// addText adds the flags that say how lines are printed, and where.
func (l *livePrint) addText(cmd *cobra.Command, prefix string) {
	f := cmd.Flags()
	f.StringVar(&l.to, "print-to", "", "print to `FILE`, not to standard error")
	f.BoolVar(&l.o.JSON, prefix+"json", false, "print one JSON object per line, as iotape print --json does")
	short := "k"
	if prefix != "" {
		short = ""
	}
	f.BoolVarP(&l.o.Stacks, prefix+"stack-trace", short, false,
		"print the stack of each call that has one; implies --stacks")
	f.IntVar(&l.o.MaxBytes, "max-bytes", 32, "show the first `N` bytes of each buffer in lines, up to 64")
	l.clock.AddLines(cmd)
}

// record carries out the plan, and prints meanwhile.
func (l *livePrint) record(ctx context.Context, c *cli.Console, r *capturing) error {
	done, err := l.watch(c, r)
	if err != nil {
		return err
	}
	return done(cli.Record(ctx, &r.plan))
}

// watch puts the printing, and the limits that need the events, into the plan.
func (l *livePrint) watch(c *cli.Console, r *capturing) (done func(error) error, err error) {
	p := &r.plan
	if l.o.Stacks && p.Capture.Stacks == nil {
		if err := p.Stacks(nil, 1, 0); err != nil {
			return nil, err
		}
	}
	limits := tail.Limits{Events: r.maxEvents}
	if limits.Until, err = r.untilExpr(c); err != nil {
		return nil, err
	}
	on := l.on || l.count || l.to != ""
	if p.Flight != nil && (on || p.MaxBytes > 0 || limits != (tail.Limits{})) {
		return nil, cli.Usage(errors.New("--print, --max-events, --max-size and --until cannot be used with " +
			"--last, which keeps the recording in memory"))
	}
	done = func(err error) error { return err }
	if !on && limits == (tail.Limits{}) {
		return done, nil
	}
	p.Capture.Latency = tail.Quick
	var o *tail.Options
	if on {
		p.ReaderHolds = p.HoldMax == 0 // unless it was asked for
		if o, done, err = l.open(c, r); err != nil {
			return nil, err
		}
	}
	p.Watch = func(ctx context.Context, stream io.Reader, stop func()) error {
		return tail.Live(ctx, stream, o, &limits, stop)
	}
	return done, nil
}

// open opens where lines go. done ends the printing: with the counts, if they are wanted.
func (l *livePrint) open(c *cli.Console, r *capturing) (o *tail.Options, done func(error) error, err error) {
	if l.o.MaxBytes < 1 || l.o.MaxBytes > 64 {
		return nil, nil, cli.Usage(fmt.Errorf("--max-bytes %d: the value must be from 1 to 64", l.o.MaxBytes))
	}
	if l.o.Clock, l.o.Location, err = l.clock.Lines(r.cmd); err != nil {
		return nil, nil, err
	}
	out := c.Err
	if l.to != "" {
		if out, err = os.Create(l.to); err != nil {
			return nil, nil, fmt.Errorf("print to %w", err)
		}
		r.plan.Owner.Give(l.to)
	}
	// Who reads the lines may leave: that is no end of the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	l.o.Out, l.o.Note, l.o.Style = c.Escaped(out), c.Reporter().Note, c.Style(out)
	var counts *report.Collector
	if l.count {
		counts = report.NewCollector(&report.Options{CallName: stracetext.CallName})
		l.o.See = func(ev *event.Event) { counts.See(ev) }
	}
	return &l.o, func(err error) error {
		if counts != nil {
			if writeErr := l.writeCounts(out, counts.Finish()); err == nil {
				err = writeErr
			}
		}
		if l.to != "" {
			if closeErr := out.Close(); err == nil && closeErr != nil {
				err = fmt.Errorf("print to %w", closeErr)
			}
		}
		return err
	}, nil
}

func (l *livePrint) writeCounts(out io.Writer, s *report.Stat) error {
	if l.o.JSON {
		return s.JSON(out)
	}
	return s.Text(out)
}
