package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/fusefs"
	"github.com/iotape/iotape/record/tracer"
	"github.com/iotape/iotape/record/tracer/config"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// running is one iotape run.
type running struct {
	c      *console
	cfg    *config.Config
	groups []*targetGroup
	sig    *signals
	leave  context.Context // ends with a second signal: mounts that are in use are left
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
	plan  recordPlan // of the capture
	fan   *tracer.Fan

	// Of running.mu:
	backend *backend        // that records now; nil before and after
	control capture.Control // of it; nil if it cannot be changed
	ended   bool
	res     *capture.Result
}

// runTracers records with all tracers of a configuration, to the end.
func runTracers(ctx context.Context, c *console, cfg *config.Config) error {
	r := &running{c: c, cfg: cfg}
	var stop func()
	r.leave, stop = secondSignal(ctx)
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
			return c.sayErrors(err, false)
		}
		r.groups = append(r.groups, g)
	}
	for _, t := range r.tracers {
		if t.plan.to == "" {
			t.plan.out = t.name()
			if err := t.plan.check(); err != nil {
				return c.sayErrors(cfg.Errorf(t.cfg.Path+".output", "tracer %q: %v", t.cfg.Name, err), false)
			}
		}
	}
	r.sig = catchSignals() // from here on they are the command's; see package internal/ptracer
	defer r.sig.stop()
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
		g.plan.until = rest
		if len(g.input.Command) > 0 {
			g.plan.until = context.WithoutCancel(ctx)
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
		return err
	}
	return r.status(results)
}

// command returns the group that has a command, -1 if none has.
func (r *running) command() int {
	return slices.IndexFunc(r.groups, func(g *targetGroup) bool { return len(g.input.Command) > 0 })
}

func (r *running) status(results []*capture.Result) error {
	for _, t := range r.tracers {
		if t.state == stateFailed {
			return &statusError{Status: exitRecord}
		}
	}
	if i := r.command(); i >= 0 && results[i] != nil {
		return commandStatus(results[i])
	}
	return nil
}

// newGroup plans the capture of a target.
func (r *running) newGroup(tracers []*config.TracerSpec) (*targetGroup, error) {
	in, own := tracers[0].Input, &r.cfg.Capture
	g := &targetGroup{run: r, input: in}
	p := &g.plan
	wrong := func(err error) error { return r.cfg.Errorf(in.Path(), "%v", err) }
	var err error
	if p.backend, err = parseBackend(own.Backend); err != nil {
		return nil, wrong(err)
	}
	if in.Mount != nil {
		r.planMount(g)
	} else {
		pids := make([]string, len(in.PIDs))
		for i, pid := range in.PIDs {
			pids[i] = strconv.Itoa(pid)
		}
		flags := targetFlags{pids: strings.Join(pids, ","), cgroup: in.Cgroup, all: in.All, duration: in.Duration}
		overflow := own.Overflow
		if overflow == "" {
			overflow = capture.OverflowBlock
		}
		if err := flags.plan(p, in.Command, overflow, own.Overflow != ""); err != nil {
			return nil, wrong(err)
		}
	}
	if p.owner, err = findOwner(in.User); err != nil {
		return nil, wrong(err)
	}
	p.owner.plan(&p.capture)
	p.capture.RingBytes, p.capture.Mmap = int(own.Ring), own.Mmap
	if p.capture.Mmap == "" {
		p.capture.Mmap = capture.MmapData
	}
	g.wants(tracers)
	if g.fan, err = tracer.NewFan(&tracer.Options{Content: p.capture.Content, Wakeups: p.capture.Wakeups, Late: r.cfg.Control.Late}); err != nil {
		return nil, err
	}
	for _, t := range tracers {
		r.tracers = append(r.tracers, newTracing(r, g, t))
	}
	return g, nil
}

// wants plans what the capture has to record for its tracers: what one of them wants.
func (g *targetGroup) wants(tracers []*config.TracerSpec) {
	o, own := &g.plan.capture, &g.run.cfg.Capture
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
	union, err := predicate.Compile(any, hostOptions())
	if err != nil {
		return // together they are too long
	}
	// What programs do with mapped files is recorded if filters may change.
	screenRecording(&g.plan, union, own.Mmap != "" || !g.run.cfg.Control.Off)
}

// planMount plans the capture of a mount.
func (r *running) planMount(g *targetGroup) {
	in := g.input
	source := fusefs.Backend{Lower: in.Mount.Lower, Mountpoint: in.Mount.At, Cache: in.Mount.Cache, Leave: r.leave}
	g.plan.name, g.plan.target = "mount", source.Lower+" mounted at "+source.Mountpoint
	g.plan.duration = in.Duration
	g.plan.capture.Started = func(int) { r.c.say("%s shows %s, recorded until it is unmounted", in.Mount.At, in.Mount.Lower) }
	g.plan.backend = []backend{{source, func(*capture.Options) int { return 1 }}}
}

// liveFilter is a filter with what of it can be decided of records. What programs do with
// mapped files is left to sealing: what one record has of a page others refer to.
func liveFilter(g *predicate.Graph) tracer.Filter {
	return tracer.Filter{Expr: g.Expr(), Screen: g.Screen(slice.MayLeaveOut)}
}

// record records the target with the first back end that can, to its end.
func (g *targetGroup) record() (*capture.Result, error) {
	r := g.run
	note := func(line string) { r.c.say("%s", line) }
	g.plan.capture.Note = note
	res, err := anyBackend(r.c, &g.plan, g.recordWith, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for t := range g.tracers() {
			if t.state == stateRunning {
				g.fan.Detach(t.t, &trace.End{})
				t.out.discard()
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

func (g *targetGroup) recordWith(b *backend) (*capture.Result, error) {
	r := g.run
	o := g.plan.capture
	o.Control = func(control capture.Control) {
		r.mu.Lock()
		g.control = control
		r.mu.Unlock()
	}
	if !r.cfg.Control.Off && b.Name() != "ebpf" {
		o.Screen = nil // it could not be taken back
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
	sw, err := trace.NewStreamWriterTo(g.fan, 0, g.plan.head(b))
	if err != nil {
		return nil, err
	}
	ctx, cancel := g.plan.context()
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
			t.out.discard()
			t.state, t.err = stateFailed, err
			continue
		}
		end := endOf(res)
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
	ctx := r.sig.context() // from here on signals mean us
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
			t.seal(ctx, t.group.res, true)
		}
		if state == stateWaiting {
			r.c.say("%s: was not started", t.cfg.Name)
		}
	}
}

// seal makes what is to be made of a stream that was closed, and says what came of it.
func (t *tracing) seal(ctx context.Context, res *capture.Result, final bool) {
	if res == nil {
		res = &capture.Result{}
	}
	line, err := t.out.finish(ctx, res, t.counts, final)
	r := t.run
	r.mu.Lock()
	defer r.mu.Unlock()
	t.state, t.last, t.err = stateStopped, line, err
	if err != nil {
		t.state = stateFailed
		r.c.say("%s: %v", t.cfg.Name, err)
		if h := hintFor(newRun(r.c), err); h != "" {
			r.c.hint("%s", h)
		}
		return
	}
	r.c.say("%s: %s", t.cfg.Name, line)
}
