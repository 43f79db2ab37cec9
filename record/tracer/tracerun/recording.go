// SPDX-License-Identifier: Apache-2.0

package tracerun

import (
	"fmt"
	"time"

	"github.com/iotape/iotape/record/redact"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/record/tracer"
	"github.com/iotape/iotape/record/tracer/config"
	"github.com/iotape/iotape/trace"
)

// tracing is a tracer of iotape run. Its fields but for part belong to run.mu.
type tracing struct {
	run   *running
	group *targetGroup
	cfg   *config.TracerSpec
	t     *tracer.Tracer
	plan  session.Plan // of its output

	filter    tracer.Filter
	verbosity tracer.Verbosity
	head      *trace.Head // of the present recording, with the filter that it has by now

	state  tracingState
	part   int // recordings that were begun
	out    assembly
	counts tracer.Counts // of the last recording
	ending bool          // iotape tracers stop makes its tape
	sealed chan struct{} // closed when it has
	began  time.Time
	last   string // what came of the last recording
	err    error  // why it failed
}

type tracingState string

const (
	stateWaiting tracingState = "waiting" // for its target, or to be started
	stateRunning tracingState = "running"
	stateSealing tracingState = "sealing"
	stateStopped tracingState = "stopped"
	stateFailed  tracingState = "failed"
)

func newTracing(r *running, g *targetGroup, t *config.TracerSpec) *tracing {
	tr := &tracing{run: r, group: g, cfg: t, state: stateWaiting}
	if tr.verbosity = t.Verbosity; t.Filter != nil {
		tr.filter = liveFilter(t.Filter)
	}
	tr.plan = session.Plan{
		Name: t.Name, Tape: t.Output.Tape, To: t.Output.To, Pipe: t.Output.Pipe, KeepStream: t.Output.KeepStream,
		Owner: g.plan.Owner, Program: r.Program, Reporter: r.Reporter, Messages: r.Messages, Stdout: r.Stdout,
	}
	tr.plan.Redact, _ = t.Output.Redact.(*redact.Patterns)
	if t.Output.Index {
		tr.plan.Index = r.Index
	}
	if tr.plan.Pipe != nil && tr.plan.Pipe.Encrypted {
		tr.plan.Seal = session.SealNever
	}
	return tr
}

// name returns the tape of the next recording: NAME.tape, then NAME-2.tape.
func (t *tracing) name() string {
	name := t.cfg.Output.Tape
	if name == "" {
		name = t.cfg.Name + ".tape"
	}
	if t.part > 1 {
		name = fmt.Sprintf("%s-%d.tape", sealing.TrimTape(name), t.part)
	}
	return name
}

// attach begins a recording with the tracer.
func (t *tracing) attach(b *session.Backend) error {
	t.part++
	t.plan.Tape = t.name()
	t.out = nil
	next := tracer.New(t.cfg.Name, t.filter, t.verbosity)
	err := t.group.fan.Attach(next, func(window *trace.Window) (tracer.Assembly, error) {
		head := t.group.plan.Head(b)
		head.ClockNS, head.WallNS = t.run.clockNS, t.run.wallNS
		head.Filter, head.Content, head.Window = t.filter.Text(), t.verbosity.Content.String(), window
		if t.cfg.Resolution > 1 {
			head.ResolutionNS = t.cfg.Resolution.Nanoseconds()
		}
		var err error
		t.head = head
		t.out, err = t.open(head)
		return t.out, err
	})
	if err != nil {
		if t.out != nil {
			t.out.Discard()
		}
		return fmt.Errorf("tracer %s: %w", t.cfg.Name, err)
	}
	t.t, t.state, t.began, t.err, t.ending = next, stateRunning, time.Now(), nil, false
	return nil
}

// open begins the tracer's assembly.
func (t *tracing) open(head *trace.Head) (assembly, error) {
	if t.cfg.Aggregate != nil {
		return openAggregate(t.run, t.cfg.Name, t.cfg.Aggregate.(*aggregateSettings), head)
	}
	out, err := session.OpenStream(&t.plan, t.part)
	if err != nil {
		return nil, err
	}
	if err := out.Begin(head); err != nil {
		out.Discard()
		return nil, err
	}
	return out, nil
}
