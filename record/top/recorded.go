// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/iotape/iotape/analyze/aggregate/meter"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/aggregate"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/count"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// counting returns what counts: the kernel, or, where it does not know what rows are told apart by, a recording that
// is not kept.
func (o *Options) counting(res *capture.Result) meter.Counting {
	return func(ctx context.Context, by aggregate.By, interval time.Duration,
		each func(*aggregate.IntervalSnapshot) error) error {
		if by&aggregate.Recorded == 0 {
			return count.Counting(&o.Record.Capture, o.KernelRows, res)(ctx, by, interval, each)
		}
		r := &recorded{by: by, interval: interval, each: each, rows: o.KernelRows}
		return r.run(ctx, o.Record, res)
	}
}

// recorded counts the events of a recording while it is made.
type recorded struct {
	by       aggregate.By
	interval time.Duration
	each     func(*aggregate.IntervalSnapshot) error
	rows     int

	mu      sync.Mutex
	table   *aggregate.Table
	since   time.Time
	lost    uint64
	cgroups cgroups
}

// run records and counts until the plan's target or ctx ends, or each returns an error.
func (r *recorded) run(ctx context.Context, p session.Plan, res *capture.Result) error {
	var eachErr error
	p.Unkept, p.Until, p.Duration, p.Signals = true, ctx, 0, false
	content, err := capture.ParseContent("none")
	if err != nil {
		return err
	}
	p.Capture.Content, p.Capture.Mmap = content, capture.MmapOff
	p.Watch = func(ctx context.Context, stream io.Reader, stop func()) (err error) {
		eachErr, err = r.watch(ctx, stream, stop)
		return err
	}
	r.take(false)
	done, err := session.Record(ctx, &p)
	if done != nil && done.Capture != nil {
		*res = *done.Capture
	}
	return errors.Join(eachErr, err)
}

// watch counts a stream to its end, or until each returns an error.
func (r *recorded) watch(ctx context.Context, stream io.Reader, stop func()) (eachErr, err error) {
	ended := make(chan error, 1)
	go func() { ended <- r.read(ctx, stream) }()
	tick := time.NewTicker(r.interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if eachErr != nil {
				continue
			}
			if eachErr = r.each(r.take(false)); eachErr != nil {
				stop()
			}
		case err = <-ended:
			if eachErr == nil {
				eachErr = r.each(r.take(true))
			}
			return eachErr, err
		}
	}
}

// read counts the events of the stream that fit its filter.
func (r *recorded) read(ctx context.Context, stream io.Reader) error {
	var m *predicate.Matcher
	_, err := seal.Watch(ctx, stream, &seal.Viewer{
		Started: func(h *trace.Head) error {
			g, err := slice.StreamFilter(h, nil)
			if g != nil {
				m = g.NewMatcher()
			}
			return err
		},
		Seen: func(ev *event.Event) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.see(ev)
			if ev.Kind == event.LossMark {
				r.lost += ev.Loss().Records
			} else if m == nil || m.Match(ev) {
				r.table.Count(ev)
			}
			return nil
		},
		Idle:  func() error { return nil },
		Files: seal.Here,
	})
	if errors.Is(err, trace.ErrTruncated) || errors.Is(err, trace.ErrEmpty) {
		err = nil // it could not begin: the recorder says why
	}
	return err
}

// see notes where processes run.
func (r *recorded) see(ev *event.Event) {
	if r.by&aggregate.ByPlace == 0 {
		return
	}
	if r.cgroups.told.See(ev); ev.Kind == event.Exited && ev.TID == ev.PID {
		r.cgroups.told.Forget(ev.Host, ev.PID)
	}
}

// take returns what was counted since it was last called.
func (r *recorded) take(last bool) *aggregate.IntervalSnapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	s := &aggregate.IntervalSnapshot{Table: r.table, At: now, Elapsed: max(now.Sub(r.since), 1), Lost: r.lost,
		Last: last}
	r.cgroups.asked = nil
	r.table, r.since, r.lost = aggregate.NewTable(r.by, r.rows), now, 0
	r.table.CgroupOf = r.cgroups.of
	return s
}
