package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/sink"
	"github.com/iotape/iotape/record/capture"
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
	plan  recordPlan // of its output

	filter    tracer.Filter
	verbosity tracer.Verbosity
	head      *trace.Head // of the present recording, with the filter that it has by now

	state  tracingState
	part   int // recordings that were begun
	out    assembling
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
	tr.plan = recordPlan{
		name: t.Name, out: t.Output.Tape, to: t.Output.To, pipe: t.Output.Pipe, index: t.Output.Index, keepStream: t.Output.KeepStream, owner: g.plan.owner,
	}
	if tr.plan.pipe != nil && tr.plan.pipe.Encrypted {
		tr.plan.seal = sealNever
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
		name = fmt.Sprintf("%s-%d.tape", trimTape(name), t.part)
	}
	return name
}

// attach begins a recording with the tracer.
func (t *tracing) attach(b *backend) error {
	t.part++
	t.plan.out = t.name()
	t.out = nil
	next := tracer.New(t.cfg.Name, t.filter, t.verbosity)
	err := t.group.fan.Attach(next, func(window *trace.Window) (tracer.Assembly, error) {
		head := t.group.plan.head(b)
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
			t.out.discard()
		}
		return fmt.Errorf("tracer %s: %w", t.cfg.Name, err)
	}
	t.t, t.state, t.began, t.err, t.ending = next, stateRunning, time.Now(), nil, false
	return nil
}

// open begins the tracer's assembly.
func (t *tracing) open(head *trace.Head) (assembling, error) {
	if t.cfg.Aggregate != nil {
		return aggregateDriver.open(&assemblyJob{
			c: t.run.c, name: t.cfg.Name, settings: t.cfg.Aggregate, filter: t.filter, head: head, output: t.plan, target: &t.group.plan.capture,
		})
	}
	out, err := openTracerOutput(t.run.c, &t.plan, t.part)
	if err != nil {
		return nil, err
	}
	if err := out.begin(head); err != nil {
		out.discard()
		return nil, err
	}
	return out, nil
}

// tracerOutput is where a tracer's stream goes: a tape in the making, or a sink. It is the
// assembly driver stream.
type tracerOutput struct {
	*trace.StreamWriter
	c       *console
	p       recordPlan
	partial string // of a tape
	guard   *spaceGuard
	sink    io.WriteCloser
	counted *countingWriter
	out     *output
}

func openTracerOutput(c *console, p *recordPlan, part int) (*tracerOutput, error) {
	o := &tracerOutput{c: c, p: *p}
	if o.p.to != "" {
		name := o.p.to
		if part > 1 {
			name = nextSink(name, part)
		}
		w, err := sink.Open(context.Background(), name, &sink.Options{Stdout: c.out, New: true, Note: func(line string) { c.say("%s: %s", p.name, line) }})
		if err != nil {
			return nil, err
		}
		o.p.to = name
		if o.p.pipe == nil {
			o.p.pipe = &chain.Spec{}
		}
		o.sink, o.counted = w, &countingWriter{w: w}
		o.out = &output{spec: o.p.pipe, sink: o.counted}
		return o, nil
	}
	if err := o.p.check(); err != nil {
		return nil, err
	}
	o.partial = o.p.out + partialSuffix
	if err := os.Mkdir(o.partial, 0o777); err != nil {
		return nil, err
	}
	var err error
	if o.guard, err = guardStream(o.partial); err != nil {
		os.RemoveAll(o.partial)
		return nil, err
	}
	o.out = newOutput(o.p.pipe, o.guard)
	return o, nil
}

func (o *tracerOutput) begin(head *trace.Head) (err error) {
	var id [8]byte
	rand.Read(id[:])
	o.StreamWriter, err = trace.NewStreamWriter(o.out.writer(), binary.LittleEndian.Uint64(id[:]), head)
	return err
}

// Close implements tracer.Assembly.
func (o *tracerOutput) Close(end *trace.End) error {
	writeErr, err := o.out.end(o.StreamWriter, end)
	if o.guard != nil {
		o.guard.release()
		err = errors.Join(err, o.guard.f.Close())
	} else if closeErr := o.sink.Close(); writeErr == nil {
		writeErr = closeErr
	}
	if writeErr == nil {
		writeErr = err
	}
	return writeErr
}

// discard takes away what was made, for a recording that did not begin.
func (o *tracerOutput) discard() {
	o.out.abort()
	if o.guard != nil {
		o.guard.release()
		o.guard.f.Close()
		os.RemoveAll(o.partial)
		return
	}
	o.sink.Close()
	if o.counted.n == 0 {
		for _, name := range sink.Files(o.p.to) {
			os.Remove(name)
		}
	}
}

// finish makes the tape of a stream that was closed, and says what came of it. final: the
// target has ended, and files are as it left them.
func (o *tracerOutput) finish(ctx context.Context, res *capture.Result, counts tracer.Counts, final bool) (line string, err error) {
	defer o.p.owner.give(append(sink.Files(o.p.to), o.partial, o.p.out, trimTape(o.p.out)+".stream")...)
	lost := "lost 0"
	if counts.Lost > 0 {
		lost = "LOST " + report.Count(counts.Lost)
	}
	if counts.Err != nil {
		o.c.say("%s: the recording is not whole: %v", o.p.name, counts.Err)
	}
	if o.p.to != "" {
		return fmt.Sprintf("%s; %s written to %s", lost, report.Bytes(uint64(o.counted.n)), o.p.to), nil
	}
	if o.p.seal == sealNever {
		return fmt.Sprintf("%s recorded, %s; to seal it: iotape seal --final%s %s", report.Bytes(uint64(dirBytes(o.partial))), lost, keysFor(o.p.pipe), o.partial), nil
	}
	s := sealing{stream: filepath.Join(o.partial, streamName), work: o.partial, out: o.p.out, final: final, index: o.p.index}
	if o.p.pipe != nil {
		s.keys = &o.p.pipe.Keys
	}
	if o.p.keepStream {
		s.streamTo = trimTape(o.p.out) + ".stream"
	}
	done, err := s.run(ctx, o.c)
	if errors.Is(err, errNothingFits) {
		return err.Error(), os.RemoveAll(o.partial)
	}
	if err != nil {
		return "", withHint(err, "the recording is kept; to seal it later: iotape seal %s", o.partial)
	}
	return done.line(res), nil
}

// nextSink is where the next recordings of a tracer go: files get a number.
func nextSink(to string, part int) string {
	if len(sink.Files(to)) == 0 {
		return to
	}
	return sink.Numbered(to, part)
}
