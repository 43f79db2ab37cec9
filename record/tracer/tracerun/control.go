// SPDX-License-Identifier: Apache-2.0

package tracerun

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/iotape/iotape/internal/spell"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/predicate/source"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/record/tracer"
	"github.com/iotape/iotape/record/tracer/config"
	"github.com/iotape/iotape/record/tracer/control"
	"github.com/iotape/iotape/trace"
)

// listen takes requests of iotape tracers, until stop is called.
func (r *running) listen() (stop func()) {
	s, err := control.Listen(r)
	if err != nil {
		r.note("tracers cannot be changed while they run: %v", err)
		return func() {}
	}
	return func() { _ = s.Close() }
}

// name is what iotape tracers calls the run.
func (r *running) name() string {
	if r.cfg.Control.Name != "" {
		return r.cfg.Control.Name
	}
	name := r.cfg.File[strings.LastIndexByte(r.cfg.File, '/')+1:]
	return strings.TrimSuffix(name, ".toml")
}

// Info implements control.Handler.
func (r *running) Info() control.Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	dir, _ := os.Getwd()
	info := control.Info{PID: os.Getpid(), Name: r.name(), Config: r.cfg.File, Dir: dir}
	for _, t := range r.tracers {
		info.Tracers = append(info.Tracers, t.info())
	}
	return info
}

func (t *tracing) info() control.TracerStatus {
	i := control.TracerStatus{
		Name: t.cfg.Name, State: string(t.state), Input: t.group.input.String(),
		Filter: t.filter.Text(), Driver: "stream",
		Content: t.verbosity.Content.String(), Omit: t.verbosity.Omit.Names(), Resolution: t.cfg.Resolution.String(),
		Layers: []string{}, Output: t.plan.To, Recordings: t.part, Since: t.began, Last: t.last,
	}
	if t.cfg.Aggregate != nil {
		i.Driver = "aggregate"
	}
	if t.plan.To == "" {
		i.Output = t.name()
	}
	if t.plan.Pipe != nil {
		for _, l := range t.plan.Pipe.Layers {
			i.Layers = append(i.Layers, l.Name())
		}
	}
	if t.t != nil {
		c := t.t.Counts()
		if i.Bytes, i.Lost = c.Bytes, c.Lost; c.Err != nil {
			i.Error = c.Err.Error()
		}
	}
	if t.err != nil {
		i.Error = t.err.Error()
	}
	return i
}

// named returns a tracer. r.mu is held.
func (r *running) named(name string) (*tracing, error) {
	var names []string
	for _, t := range r.tracers {
		if t.cfg.Name == name {
			return t, nil
		}
		names = append(names, t.cfg.Name)
	}
	err := fmt.Errorf("there is no tracer %q", name)
	if near := spell.Nearest(name, names); near != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return nil, err
}

// open has the capture of a group record all calls from now on: what comes may want what
// the tracers until now did not.
func (g *targetGroup) open() error {
	if g.control == nil {
		return nil
	}
	return g.control.Open()
}

// narrow lets the capture of a group leave out again what none of its tracers that run may
// want. It spares work only: what it cannot do is recorded, as after open. r.mu is held.
func (g *targetGroup) narrow() {
	if g.control == nil {
		return
	}
	var any *predicate.Expr
	for t := range g.tracers() {
		switch {
		case t.state != stateRunning:
		case t.filter.Expr == nil:
			return
		case any == nil:
			any = t.filter.Expr
		default:
			any = predicate.Or(any, t.filter.Expr)
		}
	}
	if any == nil {
		return
	}
	union, err := predicate.Compile(any, session.FilterOptions())
	if err != nil {
		return // together they are too long
	}
	if err := g.control.Narrow(session.PrefilterOf(union)); err != nil {
		g.run.note("more is recorded than the tracers want: %v", err)
	}
}

// Start implements control.Handler.
func (r *running) Start(name string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, err := r.named(name)
	if err != nil {
		return "", err
	}
	return t.start()
}

func (t *tracing) start() (string, error) {
	switch {
	case t.state == stateRunning:
		return "", fmt.Errorf("tracer %s runs already", t.cfg.Name)
	case t.state == stateSealing:
		return "", fmt.Errorf("tracer %s is being sealed", t.cfg.Name)
	case t.group.ended:
		return "", fmt.Errorf("tracer %s: its target has ended", t.cfg.Name)
	case t.group.backend == nil:
		t.cfg.Start = true
		return fmt.Sprintf("%s will start with its target", t.cfg.Name), nil
	}
	if err := t.group.open(); err != nil {
		return "", err
	}
	if err := t.attach(t.group.backend); err != nil {
		return "", err
	}
	t.group.narrow()
	return fmt.Sprintf("%s started", t.cfg.Name), nil
}

// Stop implements control.Handler.
func (r *running) Stop(name string) (string, error) {
	r.mu.Lock()
	t, err := r.named(name)
	if err == nil && t.state != stateRunning {
		err = fmt.Errorf("tracer %s does not run: it is %s", name, t.state)
	}
	if err != nil {
		r.mu.Unlock()
		return "", err
	}
	t.detach()
	r.mu.Unlock()
	return t.sealNow()
}

// detach ends a recording whose target goes on. r.mu is held.
func (t *tracing) detach() {
	clock, wall := capture.Clocks()
	t.ending, t.sealed = true, make(chan struct{})
	t.detached(t.group.fan.Detach(t.t, &trace.End{Running: true, ClockNS: clock, WallNS: wall}))
	t.group.narrow()
}

// sealNow seals what detach has ended. Who waits for the end of it all waits for that, too.
func (t *tracing) sealNow() (string, error) {
	defer close(t.sealed)
	t.seal(t.run.signals.Context(), false)
	t.run.mu.Lock()
	defer t.run.mu.Unlock()
	return fmt.Sprintf("%s: %s", t.cfg.Name, t.last), t.err
}

// Remove implements control.Handler.
func (r *running) Remove(name string) (string, error) {
	r.mu.Lock()
	t, err := r.named(name)
	if err == nil && t.state == stateSealing {
		err = fmt.Errorf("tracer %s is being sealed", name)
	}
	if err != nil {
		r.mu.Unlock()
		return "", err
	}
	text := name + " removed"
	if t.state == stateRunning {
		t.detach()
		r.mu.Unlock()
		last, err := t.sealNow()
		if err != nil {
			return "", err
		}
		text = last + "\n" + text
		r.mu.Lock()
	}
	r.tracers = slices.DeleteFunc(r.tracers, func(other *tracing) bool { return other == t })
	r.mu.Unlock()
	return text, nil
}

// Add implements control.Handler.
func (r *running) Add(toml string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.cfg.Control.Late {
		return "", errors.New("tracers cannot be added to this run: control.late is false in its configuration")
	}
	var input *config.Input // of tracers that name none
	if len(r.groups) == 1 {
		input = r.groups[0].input
	}
	cfg, err := r.Parse("added", toml, input)
	if err != nil {
		return "", err
	}
	for _, table := range []string{"capture", "control"} {
		if cfg.Has(table) {
			return "", cfg.Errorf(table,
				"[%s] is of the whole run, and cannot be changed: only [[tracer]] tables can be added", table)
		}
	}
	var added []*tracing
	for _, t := range cfg.Tracers {
		if _, err := r.named(t.Name); err == nil {
			return "", cfg.Errorf(t.Path+".name", "there is a tracer %q already", t.Name)
		}
		i := slices.IndexFunc(r.groups, func(g *targetGroup) bool { return g.input.Same(t.Input) })
		if i < 0 {
			return "", cfg.Errorf(t.Path+".input",
				"tracer %q: nothing records %s; a run keeps the targets that it began with", t.Name, t.Input.String())
		}
		if err := r.groups[i].fan.Covers(&t.Verbosity); err != nil {
			return "", cfg.Errorf(t.Path+".stream", "tracer %q: %v", t.Name, err)
		}
		added = append(added, newTracing(r, r.groups[i], t))
	}
	var lines []string
	for _, t := range added {
		line := t.cfg.Name + " added"
		r.tracers = append(r.tracers, t)
		if t.cfg.Start {
			started, err := t.start()
			if err != nil {
				r.tracers = r.tracers[:len(r.tracers)-1]
				return strings.Join(lines, "\n"), err
			}
			line += "; " + started
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}

// Set implements control.Handler.
func (r *running) Set(name string, c *control.Change) (string, error) {
	r.mu.Lock()
	t, err := r.named(name)
	var old *tracing
	if err == nil {
		old, err = t.set(c)
	}
	r.mu.Unlock()
	if err != nil {
		return "", err
	}
	text := name + " changed"
	if old != nil {
		last, err := old.sealNow()
		if err != nil {
			return "", err
		}
		text = last + "\n" + text
	}
	return text, nil
}

// set changes a tracer; all of it, or nothing. Where the output changes it returns the
// recording that this ends, to be sealed. r.mu is held.
func (t *tracing) set(c *control.Change) (old *tracing, err error) {
	filter, plan := t.filter, t.plan
	if c.Filter != nil {
		if filter, err = readLiveFilter(*c.Filter); err != nil {
			return nil, err
		}
	}
	v, err := t.changedVerbosity(c)
	if err != nil {
		return nil, err
	}
	output := c.Tape != nil || c.To != nil || c.Pipe != nil
	tape, part := t.cfg.Output.Tape, t.part
	if output {
		if tape, err = newOutputPlan(&plan, tape, c); err != nil {
			return nil, err
		}
		if c.Tape != nil || c.To != nil {
			part = 0
		}
	}
	if output && t.state == stateSealing {
		return nil, fmt.Errorf("tracer %s is being sealed", t.cfg.Name)
	}
	if t.state != stateRunning || output {
		return t.swap(filter, v, plan, tape, part)
	}
	if c.Filter != nil {
		if err := t.setFilter(filter); err != nil {
			return nil, err
		}
	}
	if err := t.group.fan.SetVerbosity(t.t, v); err != nil {
		return nil, err
	}
	t.verbosity = v
	return nil, nil
}

// changedVerbosity returns what is recorded of each call after a change; an error if that is
// more than the run records.
func (t *tracing) changedVerbosity(c *control.Change) (v tracer.Verbosity, err error) {
	v = t.verbosity
	if c.Content != nil {
		if v.Content, err = capture.ParseContent(*c.Content); err != nil {
			return v, err
		}
	}
	if t.plan.Redact != nil && v.Content.Hashes() {
		return v, fmt.Errorf("tracer %s masks secrets (redact), which hashes and signatures are made before: "+
			"use --content full, head:N or none", t.cfg.Name)
	}
	if c.Omit != nil {
		if v.Omit, err = tracer.ParseGroups(*c.Omit); err != nil {
			return v, err
		}
	}
	return v, t.group.fan.Covers(&v)
}

// setFilter changes the filter of a tracer that runs, for calls from now on.
func (t *tracing) setFilter(filter tracer.Filter) error {
	if err := t.group.open(); err != nil {
		return err
	}
	now := func() int64 {
		clock, _ := capture.Clocks()
		return clock
	}
	head := *t.head
	head.ChangeFilter(&trace.FilterChange{SinceNS: now(), Filter: filter.Text()})
	if _, err := predicate.New(head.Filter, session.FilterOptions()); err != nil {
		return fmt.Errorf("tracer %s: with its earlier filters this one is too long: stop the tracer and start it "+
			"again", t.cfg.Name)
	}
	change, err := t.group.fan.SetFilter(t.t, filter, now)
	if err != nil {
		return err
	}
	head = *t.head
	head.ChangeFilter(change)
	t.filter, t.head = filter, &head
	t.group.narrow()
	return nil
}

// swap gives a tracer another output, and what else may change. If it runs, the new
// recording begins before the old one ends: what happens meanwhile is in both.
func (t *tracing) swap(filter tracer.Filter, v tracer.Verbosity, plan session.Plan, tape string,
	part int) (*tracing, error) {
	before := *t
	cfg := *t.cfg
	cfg.Output.Tape = tape
	t.cfg, t.plan, t.filter, t.verbosity, t.part = &cfg, plan, filter, v, part
	if before.state != stateRunning {
		return nil, nil
	}
	err := t.group.open()
	if err == nil {
		err = t.attach(t.group.backend)
	}
	if err != nil {
		*t = before
		return nil, err
	}
	before.detach()
	return &before, nil
}

// newOutputPlan changes where a stream goes. It returns the tape's name.
func newOutputPlan(p *session.Plan, tape string, c *control.Change) (string, error) {
	switch {
	case c.Tape != nil && c.To != nil:
		return "", errors.New("a stream goes to a tape, or to somewhere else")
	case c.Tape != nil:
		tape, p.To = strings.TrimRight(*c.Tape, "/"), ""
	case c.To != nil:
		p.To = *c.To
	}
	if c.Pipe != nil {
		spec, err := chain.Parse(*c.Pipe)
		if err != nil {
			return "", fmt.Errorf("pipe: %w", err)
		}
		p.Pipe, p.Seal = spec, session.SealAfter
		if spec.Encrypted {
			p.Seal = session.SealNever
		}
	}
	return tape, nil
}

// CheckFilter checks the filter of a change before it is sent, so that an error has the place
// in the text that was written, and writes it in iotape's own language. Nil is no filter.
func CheckFilter(text *string) error {
	if text == nil || *text == "" {
		return nil
	}
	x, err := source.Parse(*text)
	if err != nil {
		return err
	}
	if _, err := predicate.Compile(x, session.FilterOptions()); err != nil {
		return err
	}
	*text = x.String()
	return nil
}

func readLiveFilter(text string) (f tracer.Filter, err error) {
	if strings.TrimSpace(text) == "" {
		return f, nil
	}
	x, err := predicate.Parse(text)
	if err != nil {
		return f, err
	}
	g, err := predicate.Compile(x, session.FilterOptions())
	if err != nil {
		return f, err
	}
	return liveFilter(g), nil
}
