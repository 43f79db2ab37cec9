// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
)

// Result is what came of a Plan.
type Result struct {
	Capture *capture.Result // how the command ended, and what was recorded
	Tape    string          // that was made; "" if there is none
	Partial string          // the directory of a recording that was not sealed; "" if it was
	Dumps   []string        // tapes of the flight recorder
	Sealed  *sealing.Result // nil if no tape was made here
}

// Record carries out a plan. An error says that the recording failed, or that the command
// was not executed (CommandError); how the command ended is in the Result. ctx ends the
// recording, which is sealed all the same; see Plan.Signals.
func Record(ctx context.Context, p *Plan) (*Result, error) {
	own := *p // the caller's plan stays as it is
	p = &own
	if p.Await != "" {
		dir, made, err := awaitUnit(p.Await)
		if err != nil {
			return nil, err
		}
		if made {
			defer os.Remove(dir) // unless processes are in it
			p.note("waiting for the start of %s", p.Await)
			p.awaited = dir
		}
		p.Capture.Cgroup, p.Await = dir, ""
	}
	if !p.Signals && p.Until == nil {
		p.Until, ctx = ctx, context.WithoutCancel(ctx)
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	p.Capture.Note = p.reporter().Note
	switch {
	case p.Flight != nil:
		return recordFlight(p)
	case p.Rotate != nil && !p.Unkept:
		return recordRotated(ctx, p)
	case p.To != "":
		return recordTo(ctx, p)
	case p.Unkept:
		return recordNothing(p)
	}
	return recordTape(ctx, p)
}

// recordTape records to a tape.
func recordTape(ctx context.Context, p *Plan) (*Result, error) {
	partial := p.partial()
	lock, err := sealing.Reserve(partial)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	started := false
	defer func() {
		if !started {
			os.RemoveAll(partial)
		}
		p.Owner.Give(partial, p.Tape, p.keptStream())
	}()
	if len(p.Snapshots) > 0 {
		if err := sealing.Snapshot(ctx, p.Reporter, filepath.Join(partial, sealing.BeforeName),
			p.Snapshots, p.program()); err != nil {
			return nil, err
		}
	}
	// From here on signals are the command's; see package internal/ptracer.
	sig := p.signals()
	defer sig.Stop()
	job := p.job(p.Tape)
	job.Final = true
	live := sealing.NewLive(job)
	defer live.Abandon()
	done := p.Capture.Started
	what := ""
	p.Capture.Attached = func(n running.Count) { what = attached(&n) }
	p.Capture.Started = func(pid int) {
		started = true
		if p.Capture.Running() {
			p.note("recording%s%s", what, p.length())
		}
		if p.Seal == SealLive {
			if err := live.Start(); err != nil {
				p.reporter().Problem(err)
			}
		}
		if done != nil {
			done(pid)
		}
	}
	res, err := p.capture(partial)
	var never *CommandError // it was not executed
	started = (started || res != nil) && !errors.As(err, &never)
	if err != nil {
		if started {
			return nil, hint.With(err, "what was recorded is kept: iotape seal %s", partial)
		}
		return nil, err
	}
	if res.WriteErr != nil {
		p.note("the recording is not whole: %v", res.WriteErr)
		live.Abandon() // the stream's end was written anew
	}
	if p.Seal == SealNever {
		p.note("%s recorded; %s", report.Bytes(uint64(sealing.DirBytes(partial))), p.unsealed())
		return &Result{Capture: res, Partial: partial}, nil
	}
	return p.finish(sig.Sealing(), live, res)
}

// finish seals what was recorded.
func (p *Plan) finish(ctx context.Context, live *sealing.Live, res *capture.Result) (*Result, error) {
	sealed, err := live.Finish(ctx)
	if errors.Is(err, sealing.ErrNothingFits) {
		p.note("%v", err)
		return &Result{Capture: res}, os.RemoveAll(p.partial())
	}
	if err != nil {
		return nil, kept(err, "the recording is kept", p.partial())
	}
	if n := sealed.Stats.Refused; n > 0 {
		p.note("%s: recorded programs have iotape for their tracer, and there can be only one",
			report.Plural(n, "request to trace a program was refused", "requests to trace programs were refused"))
	}
	p.note("%s", sealed.Summary())
	return &Result{Capture: res, Tape: p.Tape, Sealed: sealed}, nil
}

// capture records with the first back end that can, and ends the stream.
func (p *Plan) capture(partial string) (*capture.Result, error) {
	guard, err := guardStream(partial)
	if err != nil {
		return nil, err
	}
	defer guard.f.Close()
	defer guard.release()
	f, out := guard.f, newOutput(p.Pipe, guard)
	return p.AnyBackend(func(b *Backend) (*capture.Result, error) { return p.captureWith(b, out) }, func() error {
		out.abort()
		guard.written, guard.next, guard.err = 0, 0, nil
		_, err := f.Seek(0, 0)
		return errors.Join(err, f.Truncate(0))
	})
}

// guardStream makes the stream of a recording in its directory.
func guardStream(partial string) (*spaceGuard, error) {
	f, err := os.OpenFile(filepath.Join(partial, sealing.StreamName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	guard := (*spaceGuard)(nil)
	if err = sealing.Claim(f); err == nil {
		guard, err = newSpaceGuard(f, filepath.Join(partial, sealing.HoldName))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return guard, nil
}

// AnyBackend records with the first back end that can. Before it tries another one it
// calls again.
func (p *Plan) AnyBackend(record func(*Backend) (*capture.Result, error), again func() error) (*capture.Result, error) {
	defer p.watchOver()()
	if len(p.Capture.Command) == 0 { // the others can trace what runs
		p.Backends = slices.DeleteFunc(slices.Clone(p.Backends), func(b Backend) bool {
			return b.Name() == "interpose" && len(p.Backends) > 1
		})
	}
	for i := range p.Backends {
		last := i == len(p.Backends)-1
		res, err := record(&p.Backends[i])
		if err == nil || res != nil {
			return res, err
		}
		var unsupported *capture.UnsupportedError
		if last || !errors.As(err, &unsupported) {
			if len(p.Capture.Command) == 0 {
				return nil, err
			}
			return nil, StartError(p.Capture.Command[0], err)
		}
		p.note("recording with %s: %s", p.Backends[i+1].Name(), unsupported.Short())
		if err := again(); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("no way to record")
}

func (p *Plan) captureWith(b *Backend, out *output) (*capture.Result, error) {
	o := p.Capture
	o.HoldMax = p.outputHoldMax()
	ctx, stop := p.Context(&o)
	defer stop()
	limit := &limiter{stop: stop, started: o.Started}
	o.Started = limit.begin
	w := &tee{w: out.writer(), watch: p.Watch, vital: p.Unkept, stop: limit.reach, limit: p.MaxBytes}
	patient := newPatientSink(w, p.outputHoldMax(), p.note)
	defer patient.close()
	masking, said := p.redacted(patient, p.note)
	sw, err := trace.NewStreamWriterTo(masking, trace.NewStreamID(), p.Head(b))
	if err != nil {
		return nil, err
	}
	unsaid := context.AfterFunc(ctx, func() {
		if len(o.Command) > 0 && !p.cancelled() {
			p.note("the recording has ended; the command continues")
		}
	})
	done := p.takeNotes(sw, &limit.pid)
	res, err := b.Run(ctx, &o, sw)
	done()
	unsaid()
	patient.settle(res)
	said()
	if err != nil {
		_ = w.finish()
		return nil, err
	}
	if pid := int(limit.pid.Load()); ctx.Err() != nil && !p.cancelled() && pid != 0 {
		awaitCommand(pid, res)
	}
	writeErr, err := out.end(sw, EndOf(res))
	if res.WriteErr == nil {
		res.WriteErr = writeErr
	}
	if watchErr := w.finish(); watchErr != nil {
		p.reporter().Problem(watchErr)
	}
	return res, err
}

// cancelled reports whether the plan's caller has ended the recording, and not one of its limits.
func (p *Plan) cancelled() bool { return p.Until != nil && p.Until.Err() != nil }

// attached says what runs already and is recorded now.
func attached(n *running.Count) string {
	return fmt.Sprintf(" %s with %s and %s", report.Plural(uint64(n.Processes), "process", "processes"),
		report.Plural(uint64(n.Threads), "thread", "threads"),
		report.Plural(uint64(n.Descriptors), "open descriptor", "open descriptors"))
}

// length says how long a recording of what runs already is.
func (p *Plan) length() string {
	switch {
	case p.Duration > 0 && p.awaited != "":
		return " for " + p.Duration.String() + " from the start on"
	case p.Duration > 0:
		return " for " + p.Duration.String()
	}
	return ": end it with SIGINT or SIGTERM"
}

// run runs a back end until the recording's context ends.
func (p *Plan) run(b *Backend, sw *trace.StreamWriter) (*capture.Result, error) {
	o := p.Capture
	ctx, cancel := p.Context(&o)
	defer cancel()
	return b.Run(ctx, &o, sw)
}

// EndOf describes the end of a recording that ends now.
func EndOf(res *capture.Result) *trace.End {
	clock, wall := capture.Clocks()
	return &trace.End{Lost: res.Lost, ExitStatus: res.ExitStatus, Signal: res.Signal, ClockNS: clock, WallNS: wall}
}
