// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/flight"
	"github.com/iotape/iotape/trace"
)

// Options say what a Fanout gets, and whether tracers may come later.
type Options struct {
	Content capture.Content // of the capture: tracers keep as much, or less
	Wakeups bool            // the capture records them
	// Late lets tracers be attached while the recording goes on. Then the state of
	// processes and descriptors is followed all the time, which costs about what sealing does.
	Late bool
}

// A Fanout gives the frames of one capture to tracers. It is a trace.FrameSink. WriteFrame is
// called by one goroutine at a time, all else from anywhere.
type Fanout struct {
	o Options

	mu      sync.Mutex
	tracers []*Tracer
	keep    *flight.Recorder // nil without Late
	begun   bool             // there were records
	ended   bool             // there will be no more
	parts   unfinished
	threads map[uint32]*predicate.PrefilterCall
	rec     trace.Record
}

var _ trace.FrameSink = (*Fanout)(nil)

// keepBytes and keepAge bound what is kept for tracers that come later: what is older is
// only known as state.
const (
	keepBytes = flight.MinBytes
	keepAge   = 10 * time.Millisecond
)

// NewFanout returns a Fanout without tracers. Close frees it.
func NewFanout(o *Options) (*Fanout, error) {
	f := &Fanout{o: *o, parts: newUnfinished(), threads: map[uint32]*predicate.PrefilterCall{}}
	if o.Late {
		var err error
		if f.keep, err = flight.New(&flight.Options{Bytes: keepBytes, Age: keepAge}); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Close frees what the Fanout has. Tracers are closed by Detach.
func (f *Fanout) Close() error {
	if f.keep == nil {
		return nil
	}
	return f.keep.Close()
}

// Covers reports whether the capture has what a verbosity asks for.
func (f *Fanout) Covers(v *Verbosity) error {
	switch {
	case !f.o.Content.Covers(v.Content):
		return fmt.Errorf("content %s: the capture keeps %s, and that cannot be changed while it runs",
			v.Content, f.o.Content)
	case v.Wakeups && !f.o.Wakeups:
		return errors.New("wakeups: the capture does not record them, and that cannot be changed while it runs")
	}
	return nil
}

// ErrTooLate is returned when a tracer comes to a recording that has begun, and Options.Late
// was not set.
var ErrTooLate = errors.New("the recording has begun, and is not followed for tracers that come later")

// Attach makes t one of the tracers. open makes its assembly; if the recording has begun,
// window says from when on it has what is recorded, and the assembly begins with the state
// at that time.
func (f *Fanout) Attach(t *Tracer, open func(window *trace.Window) (Assembly, error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.out != nil {
		return errors.New("attach a tracer: it is attached already")
	}
	if err := f.Covers(&t.verbosity); err != nil {
		return err
	}
	t.reset(f)
	var err error
	switch {
	case !f.begun:
		t.out, err = open(nil)
	case f.keep == nil:
		return ErrTooLate
	default:
		err = f.keep.Replay(func(s *flight.State) (func(trace.Frame, []byte) error, error) {
			var err error
			if t.out, err = open(&trace.Window{SinceNS: s.SinceNS,
				Reason: "the tracer started when its target was running"}); err != nil {
				return nil, err
			}
			return func(h trace.Frame, payload []byte) error {
				f.dispatch(&h, payload, []*Tracer{t})
				return t.counts.failed()
			}, nil
		})
	}
	if err != nil {
		t.out = nil
		return err
	}
	f.tracers = append(f.tracers, t)
	return nil
}

// Detach takes a tracer away and closes its assembly, after end's Lost was filled in. While
// the recording goes on it waits for the content of calls whose records the tracer has, for
// some milliseconds as a rule; from the beginning on the tracer gets nothing else.
func (f *Fanout) Detach(t *Tracer, end *trace.End) Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.awaitContent(t)
	i := slices.Index(f.tracers, t)
	if i < 0 {
		return t.Counts()
	}
	f.tracers = slices.Delete(f.tracers, i, i+1)
	end.Lost += t.counts.lost.Load()
	t.counts.fail(t.out.Close(end))
	t.out = nil
	return t.Counts()
}

// awaitContent waits until a tracer has all content of the calls that it has. f.mu is held,
// but not while it waits.
func (f *Fanout) awaitContent(t *Tracer) {
	if f.ended || t.out == nil || t.closing != nil || t.counts.failed() != nil {
		return
	}
	c := &closing{calls: map[callKey]struct{}{}, done: make(chan struct{})}
	for key := range f.parts.calls {
		if _, refused := t.refused[key]; !refused {
			c.calls[key] = struct{}{}
		}
	}
	if len(c.calls) == 0 {
		return
	}
	t.closing = c
	f.mu.Unlock()
	select {
	case <-c.done:
	case <-time.After(contentWithin): // sealing counts what is missing
	}
	f.mu.Lock()
}

// SetFilter has another filter hold for calls that begin from now on, and says when that is.
// The capture has to record what the filter may want already. now reads the recording's
// clock (monotonic, ns): here, where no record of a later call has been judged yet.
func (f *Fanout) SetFilter(t *Tracer, filter Filter, now func() int64) (*trace.FilterChange, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.out == nil {
		return nil, errors.New("change a filter: the tracer is not attached")
	}
	c := &trace.FilterChange{SinceNS: now(), Filter: filter.Text()}
	if err := t.out.ChangeFilter(c); err != nil {
		return nil, err
	}
	t.prefilters = append(t.prefilters, prefilter{uint64(c.SinceNS), filter.Prefilter})
	t.filter = filter
	return c, nil
}

// SetVerbosity has a tracer keep more or less, from the next records on.
func (f *Fanout) SetVerbosity(t *Tracer, v Verbosity) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.Covers(&v); err != nil {
		return err
	}
	t.verbosity = v
	t.prepare(f)
	return nil
}

// WriteFrame implements trace.FrameSink. Its errors are those of the Fanout itself: one of a
// tracer's output is the tracer's.
func (f *Fanout) WriteFrame(h *trace.Frame, payload []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keep != nil {
		if err := f.keep.WriteFrame(h, payload); err != nil {
			return err
		}
	}
	switch h.Kind {
	case trace.FrameRecords:
		f.begun = true
		f.parts.see(payload)
		f.dispatch(h, payload, f.tracers)
	case trace.FrameEnd:
		f.ended = true
	}
	for _, t := range f.tracers {
		if t.closing == nil {
			continue
		}
		if t.closing.settle(&f.parts); f.ended {
			t.closing.end()
		}
	}
	return nil
}

// dispatch gives a frame to tracers. It decodes the records only if a tracer has a filter.
func (f *Fanout) dispatch(h *trace.Frame, payload []byte, tracers []*Tracer) {
	filtered := false
	for _, t := range tracers {
		t.buf, filtered = t.buf[:0], filtered || !t.takesAll()
	}
	if filtered {
		f.applyFilters(payload, tracers)
	} else if len(f.threads) > 0 {
		clear(f.threads) // they would not be what they are when it is looked at again
	}
	for _, t := range tracers {
		own := payload
		if !t.takesAll() {
			own = t.digest.Payload(t.buf)
		}
		with := *h
		if t.closing != nil {
			with.Lost = 0 // it is of what came later
		}
		if len(own) > 0 || with.Lost > 0 {
			t.write(&with, own)
		}
	}
}

// applyFilters puts what each tracer with a filter wants of a frame into its buffer.
func (f *Fanout) applyFilters(payload []byte, tracers []*Tracer) {
	for body, err := range trace.Records(payload) {
		if err != nil || len(body) < 16 {
			return // no back end writes such
		}
		r := &f.rec
		switch typ := trace.TypeOf(body); typ {
		case trace.RecTask, trace.RecCall, trace.RecData, trace.RecExit, trace.RecWake:
			if r.Decode(body) != nil {
				return
			}
		default:
			r = nil // all tracers want it
		}
		var thread *predicate.PrefilterCall
		if r != nil {
			f.follow(r)
			thread = f.threads[r.TID]
		}
		for _, t := range tracers {
			if !t.takesAll() && t.wants(r, thread) {
				t.add(r, body)
			}
		}
	}
}

// follow keeps what a filter may ask of threads as their last identity records say it.
func (f *Fanout) follow(r *trace.Record) {
	switch r.Type {
	case trace.RecTask:
		f.threads[r.TID] = &predicate.PrefilterCall{PID: r.PID, TID: r.TID, PPID: r.PPID, PGRP: r.PGID, SID: r.SID,
			UID: r.UID, GID: r.GID, Comm: r.Comm}
	case trace.RecExit:
		delete(f.threads, r.TID)
	}
}
