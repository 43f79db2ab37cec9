package main

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

// topOutput is where read-outs and alarms go: to tables, to JSON, or to a screen.
type topOutput struct {
	c      *console
	p      *topPlan
	cancel context.CancelFunc
	mu     sync.Mutex // of standard output: alarms and read-outs come from one goroutine, lines from any
	seen   int        // read-outs
	screen *topScreen // nil: there is none
}

func newTopOutput(c *console, p *topPlan, cancel context.CancelFunc) *topOutput {
	o := &topOutput{c: c, p: p, cancel: cancel}
	if p.live {
		o.screen = newTopScreen(o)
	}
	return o
}

func (o *topOutput) start() error {
	if o.screen == nil {
		return nil
	}
	return o.screen.start()
}

func (o *topOutput) say(line string) {
	if o.screen != nil && o.screen.say(line) {
		return
	}
	o.c.say("%s", line)
}

func (o *topOutput) alarm(a *alarm.Alarm) {
	switch {
	case o.screen != nil:
		o.screen.alarm(a)
	case o.p.json:
		o.mu.Lock()
		defer o.mu.Unlock()
		_ = o.c.print(func(w *bufio.Writer) error { return view.AlarmJSON(w, a) }) // the next read-out says it
	default:
		o.c.say("%s", o.p.view.AlarmLine(a))
	}
}

// show shows a read-out. Its error ends counting.
func (o *topOutput) show(r *aggregate.IntervalSnapshot, _ *aggregate.Table) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen++
	err := error(nil)
	switch {
	case o.screen != nil:
		o.screen.show(r)
	case o.p.json:
		err = o.c.print(func(w *bufio.Writer) error { return o.p.view.JSON(w, r) })
	case r.Last && o.seen == 1: // the table of all is the same
	default:
		err = o.c.print(func(w *bufio.Writer) error {
			fmt.Fprintln(w, view.Heading(r))
			if err := o.p.view.Text(w, r.Table, r.Elapsed); err != nil {
				return err
			}
			return w.WriteByte('\n')
		})
	}
	if err == nil && o.p.count > 0 && o.seen >= o.p.count {
		return errEnough
	}
	return err
}

// end shows what was counted in all, unless that is already said.
func (o *topOutput) end(sum *aggregate.Table, well bool) error {
	var err error
	if o.screen != nil {
		err = o.screen.end()
	}
	if o.p.json || !well {
		return err
	}
	return errors.Join(err, o.c.print(func(w *bufio.Writer) error {
		fmt.Fprintln(w, view.TotalText(sum))
		return o.p.view.Text(w, sum, 0)
	}))
}
