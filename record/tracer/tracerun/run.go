// SPDX-License-Identifier: Apache-2.0

package tracerun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/fusefs"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/record/tracer"
	"github.com/iotape/iotape/record/tracer/config"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// Options for Run.
type Options struct {
	Program  string           // name and version of the recording program
	Index    sealing.Indexer  // of tapes whose configuration wants it
	Reporter sealing.Reporter // nil: sealing.Silent
	Messages *os.File         // that the Reporter writes to, see sealing.Job
	Stdout   *os.File         // where a tracer's output "-" goes
	// Parse reads the configuration of tracers that are added while others run. input is
	// what tracers record that do not say it; it may be nil.
	Parse func(name, doc string, input *config.Input) (*config.Config, error)
}

// running is one run of several tracers.
type running struct {
	Options
	cfg     *config.Config
	groups  []*targetGroup
	signals *session.Signals
	leave   context.Context // ends with a second signal: mounts that are in use are left
	// clockNS and wallNS are one moment: the anchor of all recordings, so that filters with
	// times mean the same in each.
	clockNS, wallNS int64

	mu      sync.Mutex
	tracers []*tracing
}

// targetGroup is a target, and the capture that its tracers share.
type targetGroup struct {
	run   *running
	input *config.Input
	plan  session.Plan // of the capture
	fan   *tracer.Fanout

	// Of running.mu:
	backend *session.Backend // that records now; nil before and after
	control capture.Control  // of it; nil if it cannot be changed
	ended   bool
	res     *capture.Result
}

// ErrFailed is returned by Run if a tracer failed. The Reporter was told which, and why.
var ErrFailed = errors.New("a tracer failed")

// Run records with all tracers of a configuration, to the end. Signals are the command's
// while it runs, see session.Plan.Signals; without a command ctx ends the recording. The
// result is that of the command, nil if there is none. An error of type config.Errors or
// *config.Error says what is wrong with the configuration.
func Run(ctx context.Context, cfg *config.Config, o *Options) (*capture.Result, error) {
	r := &running{Options: *o, cfg: cfg}
	r.Reporter = sealing.OrSilent(r.Reporter)
	var stop func()
	r.leave, stop = session.SecondSignal(ctx)
	defer stop()
	r.clockNS, r.wallNS = capture.Clocks()
	for _, t := range cfg.Tracers {
		if t.Output.Pipe == nil {
			continue
		}
		for _, name := range t.Output.Pipe.Variables {
			_ = os.Unsetenv(name) // the command does not get keys
		}
	}
	for _, tracers := range cfg.Groups() {
		g, err := r.newGroup(tracers)
		if err != nil {
			return nil, err
		}
		r.groups = append(r.groups, g)
	}
	for _, t := range r.tracers {
		if t.plan.To == "" {
			t.plan.Tape = t.name()
			if err := t.plan.CheckTape(); err != nil {
				if next := hint.Of(err); next != "" {
					err = fmt.Errorf("%w; %s", err, next) // what is wrong with a configuration is one line
				}
				return nil, cfg.Errorf(t.cfg.Path+".output", "tracer %q: %v", t.cfg.Name, err)
			}
		}
	}
	r.signals = session.CatchSignals() // from here on they are the command's; see package internal/ptracer
	defer r.signals.Stop()
	if !cfg.Control.Off {
		stop := r.listen()
		defer stop()
	}
	results, errs := make([]*capture.Result, len(r.groups)), make([]error, len(r.groups))
	rest, leave := context.WithCancel(ctx) // of the groups without a command
	defer leave()
	if r.command() >= 0 {
		rest, leave = context.WithCancel(context.WithoutCancel(ctx))
		defer leave()
	}
	var all sync.WaitGroup
	for i, g := range r.groups {
		g.plan.Until = rest
		if len(g.input.Command) > 0 {
			g.plan.Until = context.WithoutCancel(ctx)
		}
		all.Go(func() {
			results[i], errs[i] = g.record()
			if i == r.command() || errs[i] != nil {
				leave()
			}
		})
	}
	all.Wait()
	r.finish()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r.result(results)
}

// command returns the group that has a command, -1 if none has.
func (r *running) command() int {
	return slices.IndexFunc(r.groups, func(g *targetGroup) bool { return len(g.input.Command) > 0 })
}

func (r *running) result(results []*capture.Result) (*capture.Result, error) {
	for _, t := range r.tracers {
		if t.state == stateFailed {
			return nil, ErrFailed
		}
	}
	if i := r.command(); i >= 0 {
		return results[i], nil
	}
	return nil, nil
}

func (r *running) note(format string, args ...any) { r.Reporter.Note(fmt.Sprintf(format, args...)) }

// newGroup plans the capture of a target.
func (r *running) newGroup(tracers []*config.TracerSpec) (*targetGroup, error) {
	in, own := tracers[0].Input, &r.cfg.Capture
	g := &targetGroup{run: r, input: in}
	p := &g.plan
	p.Program, p.Reporter = r.Program, r.Reporter
	wrong := func(err error) error { return r.cfg.Errorf(in.Path(), "%v", err) }
	var err error
	if p.Backends, err = session.ParseBackends(own.Backend); err != nil {
		return nil, wrong(err)
	}
	if in.Mount != nil {
		r.planMount(g)
	} else {
		o := &p.Capture
		o.Command, o.PIDs, o.Cgroup, o.All, o.Overflow = in.Command, in.PIDs, in.Cgroup, in.All, own.Overflow
		p.Duration = in.Duration
		if err := p.Resolve(); err != nil {
			return nil, wrong(err)
		}
	}
	if p.Owner, err = session.FindOwner(in.User); err != nil {
		return nil, wrong(err)
	}
	p.Owner.Apply(&p.Capture)
	p.Capture.RingBytes, p.Capture.Mmap = int(own.Ring), own.Mmap
	if p.Capture.Mmap == "" {
		p.Capture.Mmap = capture.MmapData
	}
	g.wants(tracers)
	if g.fan, err = tracer.NewFanout(&tracer.Options{Content: p.Capture.Content, Wakeups: p.Capture.Wakeups,
		Late: r.cfg.Control.Late}); err != nil {
		return nil, err
	}
	for _, t := range tracers {
		r.tracers = append(r.tracers, newTracing(r, g, t))
	}
	return g, nil
}

// wants plans what the capture has to record for its tracers: what one of them wants.
func (g *targetGroup) wants(tracers []*config.TracerSpec) {
	o, own := &g.plan.Capture, &g.run.cfg.Capture
	o.Content, o.Wakeups = tracers[0].Verbosity.Content, own.Wakeups
	for _, t := range tracers {
		o.Content = o.Content.Union(t.Verbosity.Content)
		o.Wakeups = o.Wakeups || t.Verbosity.Wakeups
	}
	if own.Content != nil {
		o.Content = *own.Content
	}
	for _, t := range tracers {
		if !t.Start || t.Filter == nil {
			return // something wants all, or may
		}
	}
	any := tracers[0].Filter.Expr()
	for _, t := range tracers[1:] {
		any = predicate.Or(any, t.Filter.Expr())
	}
	union, err := predicate.Compile(any, session.FilterOptions())
	if err != nil {
		return // together they are too long
	}
	// What programs do with mapped files is recorded if filters may change.
	g.plan.Prefilter(union, own.Mmap != "" || !g.run.cfg.Control.Off)
}

// planMount plans the capture of a mount.
func (r *running) planMount(g *targetGroup) {
	in := g.input
	source := fusefs.Backend{Lower: in.Mount.Lower, Mountpoint: in.Mount.At, Cache: in.Mount.Cache, Leave: r.leave}
	g.plan.Name, g.plan.Target = "mount", source.Lower+" mounted at "+source.Mountpoint
	g.plan.Duration = in.Duration
	g.plan.Capture.Started = func(int) {
		r.note("%s shows %s, recorded until it is unmounted", in.Mount.At, in.Mount.Lower)
	}
	g.plan.Backends = []session.Backend{{Backend: source, Shards: func(*capture.Options) int { return 1 }}}
}

// liveFilter is a filter with what of it can be decided of records. What programs do with
// mapped files is left to sealing: what one record has of a page others refer to.
func liveFilter(g *predicate.Graph) tracer.Filter {
	return tracer.Filter{Expr: g.Expr(), Prefilter: g.Prefilter(slice.MayLeaveOut)}
}

// record records the target with the first back end that can, to its end.
func (g *targetGroup) record() (*capture.Result, error) {
	r := g.run
	g.plan.Capture.Note = r.Reporter.Note
	res, err := g.plan.AnyBackend(g.recordWith, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for t := range g.tracers() {
			if t.state == stateRunning {
				g.fan.Detach(t.t, &trace.End{})
				t.out.Discard()
				t.state, t.part = stateWaiting, t.part-1
			}
		}
		return nil
	})
	g.end(res, err)
	return res, err
}

// tracers are those of the group. It is called with running.mu.
func (g *targetGroup) tracers() func(yield func(*tracing) bool) {
	return func(yield func(*tracing) bool) {
		for _, t := range g.run.tracers {
			if t.group == g && !yield(t) {
				return
			}
		}
	}
}

func (g *targetGroup) recordWith(b *session.Backend) (*capture.Result, error) {
	r := g.run
	o := g.plan.Capture
	o.Control = func(control capture.Control) {
		r.mu.Lock()
		g.control = control
		r.mu.Unlock()
	}
	if !r.cfg.Control.Off && b.Name() != "ebpf" {
		o.Prefilter = nil // it could not be taken back
	}
	r.mu.Lock()
	for t := range g.tracers() {
		if !t.cfg.Start {
			continue
		}
		if err := t.attach(b); err != nil {
			r.mu.Unlock()
			return nil, err
		}
	}
	g.backend = b
	r.mu.Unlock()
	sw, err := trace.NewStreamWriterTo(g.fan, 0, g.plan.Head(b))
	if err != nil {
		return nil, err
	}
	ctx, cancel := g.plan.Context(&o)
	defer cancel()
	return b.Run(ctx, &o, sw)
}

// end ends the recordings that the target's end ends.
func (g *targetGroup) end(res *capture.Result, err error) {
	r := g.run
	r.mu.Lock()
	defer r.mu.Unlock()
	g.ended, g.res, g.backend, g.control = true, res, nil, nil
	for t := range g.tracers() {
		if t.state != stateRunning {
			continue
		}
		if res == nil { // nothing was recorded
			g.fan.Detach(t.t, &trace.End{})
			t.out.Discard()
			t.state, t.err = stateFailed, err
			continue
		}
		end := session.EndOf(res)
		end.Lost = 0 // the frames say it
		t.detached(g.fan.Detach(t.t, end))
	}
}

// detached takes the counts of a recording that was closed. running.mu is held.
func (t *tracing) detached(counts tracer.Counts) {
	t.state, t.counts = stateSealing, counts
}

// finish seals what the targets' ends have left, one tracer after the other.
func (r *running) finish() {
	for _, g := range r.groups {
		_ = g.fan.Close()
	}
	ctx := r.signals.Sealing() // from here on signals mean us
	r.mu.Lock()
	list := slices.Clone(r.tracers)
	r.mu.Unlock()
	for _, t := range list {
		r.mu.Lock()
		state := t.state
		r.mu.Unlock()
		switch {
		case state == stateSealing && t.ending:
			<-t.sealed // by iotape tracers stop
		case state == stateSealing:
			t.seal(ctx, true)
		}
		if state == stateWaiting {
			r.note("%s: was not started", t.cfg.Name)
		}
	}
}

// seal makes what is to be made of a stream that was closed, and says what came of it.
func (t *tracing) seal(ctx context.Context, final bool) {
	line, err := t.out.Finish(ctx, t.counts.Lost, t.counts.Err, final)
	r := t.run
	r.mu.Lock()
	defer r.mu.Unlock()
	t.state, t.last, t.err = stateStopped, line, err
	if err != nil {
		t.state = stateFailed
		r.Reporter.Problem(fmt.Errorf("%s: %w", t.cfg.Name, err))
		return
	}
	r.note("%s: %s", t.cfg.Name, line)
}
