// SPDX-License-Identifier: Apache-2.0

package tracerun

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/iotape/iotape/analyze/aggregate/meter"
	"github.com/iotape/iotape/analyze/aggregate/view"
	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/aggregate"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// aggregateStream is the assembly driver aggregate: what a tracer gets is resolved, as sealing
// does it, summed up, and forgotten. (iotape top has the kernel count, without records;
// here they are there already, for the other tracers.)
type aggregateStream struct {
	*trace.StreamWriter
	note   func(line string)
	in     *io.PipeReader
	out    *io.PipeWriter
	meter  *meter.Meter
	file   *os.File // read-outs, a line of JSON each; nil: none
	cancel context.CancelFunc
	done   chan error

	mu    sync.Mutex
	table *aggregate.Table
	since time.Time
}

// aggregateSettings is [tracer.aggregate].
type aggregateSettings struct {
	meter meter.Options
	file  string
}

// keyError is a mistake at a key of a configuration's table.
type keyError struct {
	key string
	err error
}

func (e *keyError) Error() string { return e.err.Error() }
func (e *keyError) Key() string   { return e.key }
func (e *keyError) Unwrap() error { return e.err }

// ParseAggregate reads [tracer.aggregate]. An error with a method Key() string is shown at
// that key.
func ParseAggregate(table map[string]any) (any, error) {
	p := &aggregateSettings{}
	for key, v := range table {
		if err := p.set(key, v); err != nil {
			return nil, &keyError{key, err}
		}
	}
	if len(p.meter.Exec) > 0 && len(p.meter.Rules) == 0 {
		return nil, &keyError{"alarm-exec", errors.New("what is done on an alarm needs an alarm")}
	}
	return p, nil
}

func (p *aggregateSettings) set(key string, v any) error {
	texts, err := textsOf(v)
	if err != nil {
		return err
	}
	one := strings.Join(texts, ",")
	switch key {
	case "by":
		p.meter.By, err = aggregate.ParseBy(one)
	case "interval":
		p.meter.Interval, err = time.ParseDuration(one)
		if err == nil && (p.meter.Interval < 100*time.Millisecond || p.meter.Interval > time.Minute) {
			err = fmt.Errorf("%s is not from 100ms to 1m", p.meter.Interval)
		}
	case "listen":
		p.meter.Listen = one
	case "alarm":
		for _, text := range texts {
			r, err := alarm.ParseRule(text)
			if err != nil {
				return err
			}
			p.meter.Rules = append(p.meter.Rules, r)
		}
	case "alarm-exec":
		p.meter.Exec = texts
	case "json":
		p.file = one
	default:
		return errors.New("there is no such key; there are by, interval, listen, alarm, alarm-exec and json")
	}
	return err
}

// textsOf returns a text, or the texts of a list.
func textsOf(v any) ([]string, error) {
	switch v := v.(type) {
	case string:
		return []string{v}, nil
	case []any:
		var texts []string
		for _, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, fmt.Errorf("%v is no text", x)
			}
			texts = append(texts, s)
		}
		return texts, nil
	}
	return nil, fmt.Errorf("%v is neither a text nor a list of texts", v)
}

// openAggregate begins to count for a tracer. What it returns gets records without content.
func openAggregate(r *running, name string, p *aggregateSettings, head *trace.Head) (assembly, error) {
	a := &aggregateStream{note: func(line string) { r.note("%s: %s", name, line) },
		done: make(chan error, 1), since: time.Now()}
	a.in, a.out = io.Pipe()
	o := p.meter
	o.Say = a.note
	shown := &view.Options{UserName: view.UserNames()}
	o.Alarm = func(al *alarm.Alarm) { o.Say(shown.AlarmLine(al)) }
	if p.file != "" {
		f, err := os.OpenFile(p.file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
		if err != nil {
			return nil, err
		}
		a.file = f
		o.Show = func(r *aggregate.IntervalSnapshot, _ *aggregate.Table) error {
			w := bufio.NewWriter(f)
			return errors.Join(shown.JSON(w, r), w.Flush())
		}
	}
	var err error
	if a.meter, err = meter.New(&o); err != nil {
		a.closeFile()
		return nil, err
	}
	if addr := a.meter.Addr(); addr != nil {
		o.Say("metrics are at http://" + addr.String() + "/metrics")
	}
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(context.Background())
	go func() {
		err := a.meter.Run(ctx, a.count)
		a.in.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		a.done <- err
	}()
	if a.StreamWriter, err = trace.NewStreamWriter(a.out, trace.NewStreamID(), head); err != nil {
		a.Discard()
		return nil, err
	}
	return a, nil
}

// count is a meter.Counting of the stream.
func (a *aggregateStream) count(ctx context.Context, by aggregate.By, interval time.Duration,
	each func(*aggregate.IntervalSnapshot) error) error {
	a.table = aggregate.NewTable(by, 0)
	ended := make(chan error, 1)
	go func() {
		var m *predicate.Matcher
		_, err := seal.Watch(ctx, a.in, &seal.Viewer{Started: func(h *trace.Head) (err error) {
			g, err := slice.StreamFilter(h, nil)
			if g == nil {
				return err
			}
			for _, w := range g.Warnings() {
				a.note("filter: " + w.Message)
			}
			m = g.NewMatcher()
			return nil
		}, Seen: func(ev *event.Event) error {
			if m == nil || m.Match(ev) {
				a.mu.Lock()
				a.table.Count(ev)
				a.mu.Unlock()
			}
			return nil
		}, Idle: func() error { return nil }})
		ended <- err
	}()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := each(a.take(false)); err != nil {
				return err
			}
		case err := <-ended:
			return errors.Join(err, each(a.take(true)))
		}
	}
}

// take returns what was counted since it was last called.
func (a *aggregateStream) take(last bool) *aggregate.IntervalSnapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	r := &aggregate.IntervalSnapshot{Table: a.table, At: now, Elapsed: max(now.Sub(a.since), 1), Last: last}
	a.table, a.since = aggregate.NewTable(a.table.By, 0), now
	return r
}

// Close implements tracer.Assembly.
func (a *aggregateStream) Close(end *trace.End) error {
	return errors.Join(a.StreamWriter.Close(end), a.out.Close())
}

// Discard implements assembly.
func (a *aggregateStream) Discard() {
	a.cancel()
	a.out.CloseWithError(io.ErrUnexpectedEOF)
	<-a.done
	_ = a.meter.Close()
	a.closeFile()
}

func (a *aggregateStream) closeFile() {
	if a.file != nil {
		_ = a.file.Close() // each line was written
	}
}

// Finish waits until all is counted.
func (a *aggregateStream) Finish(_ context.Context, lost uint64, writeErr error, _ bool) (string, error) {
	err := <-a.done
	a.cancel()
	line := view.TotalText(a.meter.Sum())
	if lost > 0 {
		line += fmt.Sprintf("; LOST %d records", lost)
	}
	err = errors.Join(err, writeErr, a.meter.Close())
	a.closeFile()
	return line, err
}
