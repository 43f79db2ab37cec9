// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/analyze/aggregate/meter"
	"github.com/iotape/iotape/analyze/aggregate/view"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/model/aggregate"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/count"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/trace"
)

// Options for Run and Tape.
type Options struct {
	// Record is the plan of what is counted. Only its target, its duration, its owner and
	// Capture.Prefilter are used.
	Record     session.Plan
	Meter      meter.Options // intervals, rules, and where metrics are offered; Run sets the functions
	View       view.Options  // what is shown; Run and Tape set UserName
	Detail     Detail        // what an alarm does
	JSON       bool          // one object for each read-out
	Live       bool          // on a screen of its own, which takes In and Out
	Count      int           // read-outs until the end; 0: until the target ends
	KernelRows int           // of the tables in the kernel; 0: what fits
	In, Out    *os.File
	Results    io.Writer         // of tables and JSON; nil: Out
	Note       func(line string) // takes what people should know, apart from Out
}

// ParseOrder reads the order of the rows, one of OrderNames.
func ParseOrder(text string) (aggregate.Order, error) {
	if o := aggregate.Order(text); slices.Contains(aggregate.Orders(), o) {
		return o, nil
	}
	return "", fmt.Errorf("sort %q is none of %s", text, OrderNames())
}

// OrderNames lists the orders of the rows, with commas.
func OrderNames() string {
	var names []string
	for _, o := range aggregate.Orders() {
		names = append(names, string(o))
	}
	return strings.Join(names, ", ")
}

func (o *Options) results() io.Writer {
	if o.Results != nil {
		return o.Results
	}
	return o.Out
}

// Check returns what is wrong with the options of Run.
func (o *Options) Check() error {
	switch {
	case o.Meter.Interval < count.MinInterval || o.Meter.Interval > count.MaxInterval:
		return fmt.Errorf("interval %s is not from %s to %s", o.Meter.Interval, count.MinInterval, count.MaxInterval)
	case o.Count < 0 || o.View.Rows < 0 || o.KernelRows < 0 || o.Meter.Series < 0:
		return errors.New("less than 0 of something cannot be had")
	case o.Record.Duration > 0 && !o.Record.Capture.Running():
		return errors.New("--duration is for --pid, --cgroup and --all: a command is counted to its end")
	case o.Count > 0 && !o.Record.Capture.Running():
		return errors.New("--count is for --pid, --cgroup and --all: a command is counted to its end")
	case len(o.Meter.Rules) == 0 && (o.Detail.Exec != "" || o.Detail.Dir != ""):
		return errors.New("--alarm-exec and --detail need an --alarm")
	}
	return o.Detail.check()
}

// Screen returns the screen of a filter. The kernel has to decide all of the filter, as of
// what is counted nothing is left to be asked later.
func Screen(g *predicate.Graph) (*predicate.Prefilter, error) {
	s, undecided := g.Exact()
	if len(undecided) == 0 {
		return s, nil
	}
	names := ""
	for i, op := range undecided[:min(len(undecided), 3)] {
		if i > 0 {
			names += ", "
		}
		if op == event.OpUnknown {
			names += "calls that are not in the operation table"
		} else {
			names += op.String()
		}
	}
	if n := len(undecided) - 3; n > 0 {
		names += fmt.Sprintf(", %d others", n)
	}
	return nil, hint.With(fmt.Errorf("the kernel alone cannot decide this filter, of %s", names),
		"docs/filters.md says which tests are decided at capture; add one of op to leave out what cannot be")
}

// Tape counts the events of a tape that fit, all if fits is nil, and writes the sums to o.Out.
func Tape(t *trace.Tape, fits func(*event.Event) bool, o *Options) error {
	table := aggregate.NewTable(o.Meter.By, o.KernelRows)
	var told facts.Tracker
	table.CgroupOf = func(ev *event.Event) string {
		if d := told.Of(ev.Host, ev.PID); d != nil {
			return d.Cgroup
		}
		return ""
	}
	for ev, err := range t.Events() {
		if err != nil {
			return err
		}
		if o.Meter.By&aggregate.ByPlace != 0 {
			told.See(ev)
		}
		if fits == nil || fits(ev) {
			table.Count(ev)
		}
	}
	o.View.UserName = view.UserNames()
	return buffered(o.results(), func(w *bufio.Writer) error {
		if o.JSON {
			m := t.Manifest()
			end := time.Unix(0, t.Host(0).Wall(m.LastNS))
			length := time.Duration(max(m.LastNS-m.FirstNS, 1))
			return o.View.JSON(w, &aggregate.IntervalSnapshot{Table: table, At: end, Elapsed: length, Last: true})
		}
		fmt.Fprintln(w, view.TotalText(table))
		return o.View.Text(w, table, 0)
	})
}

// errEnough ends counting after so many read-outs.
var errEnough = errors.New("enough")

// Run counts until the target has ended, until ctx ends unless a command is counted, or
// until o.Count read-outs have been shown. It changes o. An error of type
// *session.CommandError says that the command could not be executed.
func Run(ctx context.Context, o *Options) (*capture.Result, error) {
	o.View.UserName = view.UserNames()
	if !o.Record.Capture.Running() {
		ctx = context.WithoutCancel(ctx) // the terminal's signals are for the command
	}
	o.Record.Until = ctx
	ctx, cancel := o.Record.Context(&o.Record.Capture)
	defer cancel()
	out := newOutput(o, cancel)
	o.Meter.Show, o.Meter.Alarm, o.Meter.Say = out.show, out.alarm, out.say
	o.Detail.plan(&o.Meter, &o.Record)
	m, err := meter.New(&o.Meter)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if a := m.Addr(); a != nil {
		out.say("metrics are at http://" + a.String() + "/metrics")
	}
	if err := out.start(); err != nil {
		return nil, err
	}
	var res capture.Result
	err = m.Run(ctx, o.counting(&res))
	if errors.Is(err, errEnough) {
		err = nil
	}
	endErr := out.end(m.Sum(), err == nil)
	switch {
	case err != nil && len(o.Record.Capture.Command) > 0:
		return nil, session.StartError(o.Record.Capture.Command[0], err)
	case err != nil:
		return nil, err
	case endErr != nil:
		return nil, endErr
	}
	return &res, nil
}

// buffered calls f with a buffer in front of w.
func buffered(to io.Writer, f func(w *bufio.Writer) error) error {
	w := bufio.NewWriterSize(to, 64<<10)
	err := f(w)
	if flushErr := w.Flush(); flushErr != nil && (err == nil || errors.Is(err, flushErr)) {
		return fmt.Errorf("write standard output: %w", flushErr)
	}
	return err
}
