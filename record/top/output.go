// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/iotape/iotape/analyze/aggregate/view"
	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/model/aggregate"
)

// output is where read-outs and alarms go: to tables, to JSON, or to a screen.
type output struct {
	o      *Options
	cancel context.CancelFunc
	mu     sync.Mutex  // of standard output: alarms and read-outs come from one goroutine, lines from any
	seen   int         // read-outs
	screen *liveScreen // nil: there is none
}

func newOutput(o *Options, cancel context.CancelFunc) *output {
	out := &output{o: o, cancel: cancel}
	if o.Live {
		out.screen = newLiveScreen(out)
	}
	return out
}

func (out *output) start() error {
	if out.screen == nil {
		return nil
	}
	return out.screen.start()
}

func (out *output) say(line string) {
	if out.screen != nil && out.screen.say(line) {
		return
	}
	out.o.Note(line)
}

func (out *output) alarm(a *alarm.Alarm) {
	switch {
	case out.screen != nil:
		out.screen.alarm(a)
	case out.o.JSON:
		out.mu.Lock()
		defer out.mu.Unlock()
		_ = buffered(out.o.results(),
			func(w *bufio.Writer) error { return view.AlarmJSON(w, a) }) // the next read-out says it
	default:
		out.o.Note(out.o.View.AlarmLine(a))
	}
}

// show shows a read-out. Its error ends counting.
func (out *output) show(r *aggregate.IntervalSnapshot, _ *aggregate.Table) error {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.seen++
	err := error(nil)
	switch {
	case out.screen != nil:
		out.screen.show(r)
	case out.o.JSON:
		err = buffered(out.o.results(), func(w *bufio.Writer) error { return out.o.View.JSON(w, r) })
	case r.Last && out.seen == 1: // the table of all is the same
	default:
		err = buffered(out.o.results(), func(w *bufio.Writer) error {
			fmt.Fprintln(w, out.o.View.Heading(r))
			if err := out.o.View.Text(w, r.Table, r.Elapsed); err != nil {
				return err
			}
			return w.WriteByte('\n')
		})
	}
	if err == nil && out.o.Count > 0 && out.seen >= out.o.Count {
		return errEnough
	}
	return err
}

// end shows what was counted in all, unless that is already said.
func (out *output) end(sum *aggregate.Table, well bool) error {
	var err error
	if out.screen != nil {
		err = out.screen.end()
	}
	if out.o.JSON || !well {
		return err
	}
	return errors.Join(err, buffered(out.o.results(), func(w *bufio.Writer) error {
		fmt.Fprintln(w, view.TotalText(sum))
		return out.o.View.Text(w, sum, 0)
	}))
}
