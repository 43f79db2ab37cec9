// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/sink"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
)

// output is where a recording's stream is written. It begins a piped one when more than
// the head frame is written, so that a back end that cannot record leaves nothing.
type output struct {
	spec  *chain.Spec // nil: as it is
	guard *spaceGuard // nil: not a file of ours
	sink  io.Writer
	pw    *pipe.Writer
	held  []byte // the head frame: its header and its payload
	parts int    // of it
	err   error
}

func newOutput(spec *chain.Spec, guard *spaceGuard) *output {
	return &output{spec: spec, guard: guard, sink: guard}
}

// writer returns what a stream's writer writes to. Without layers nothing stands between
// it and the file.
func (o *output) writer() io.Writer {
	if o.spec == nil {
		return o.sink
	}
	return o
}

func (o *output) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	if o.pw != nil {
		return o.pw.Write(b)
	}
	if o.parts++; o.parts <= 2 {
		o.held = append(o.held, b...)
		return len(b), nil
	}
	if o.begin(); o.err != nil {
		return 0, o.err
	}
	return o.pw.Write(b)
}

func (o *output) begin() {
	if o.pw, o.err = pipe.NewWriter(o.sink, o.spec.Layers, &o.spec.Options); o.err == nil {
		_, o.err = o.pw.Write(o.held)
	}
	o.held = nil
}

// abort forgets what was written.
func (o *output) abort() {
	if o.pw != nil {
		o.pw.Abort()
	}
	o.pw, o.held, o.parts, o.err = nil, nil, 0, nil
}

// close writes the final block.
func (o *output) close() error {
	if o.spec == nil {
		return nil
	}
	if o.pw == nil && o.err == nil {
		o.begin()
	}
	if o.err != nil {
		return o.err
	}
	return o.pw.Close()
}

// end ends a stream, in order if its writer failed. It returns that failure, and whether
// there is no end.
func (o *output) end(sw *trace.StreamWriter, end *trace.End) (writeErr, err error) {
	if writeErr = errors.Join(sw.Close(end), o.close()); writeErr != nil {
		if err = o.repair(end); err != nil {
			err = fmt.Errorf("end the recording: %w", err)
		}
	}
	return writeErr, err
}

// repair ends a stream in order whose writer failed. One that was piped stays as it is:
// who writes cannot read it. It is known to be cut off.
func (o *output) repair(end *trace.End) error {
	if o.guard == nil {
		return nil
	}
	o.guard.release()
	if o.spec != nil {
		return nil
	}
	return endStream(o.guard.f, end)
}

func (p *Plan) stdout() *os.File {
	if p.Stdout == nil {
		return os.Stdout
	}
	return p.Stdout
}

// recordTo records to a sink, and makes no tape.
func recordTo(ctx context.Context, p *Plan) (*Result, error) {
	w, err := sink.Open(ctx, p.To, &sink.Options{Stdout: p.stdout(), New: true, Note: p.reporter().Note})
	if err != nil {
		return nil, fmt.Errorf("--to %w", err)
	}
	defer func() { p.Owner.Give(sink.Files(p.To)...) }()
	sig := p.signals()
	defer sig.Stop()
	spec := p.Pipe
	if spec == nil {
		spec = &chain.Spec{}
	}
	counted := &countingWriter{w: w}
	out := &output{spec: spec, sink: counted}
	if started := p.Capture.Started; p.Capture.Running() {
		p.Capture.Started = func(pid int) {
			p.note("recording%s", p.length())
			if started != nil {
				started(pid)
			}
		}
	}
	res, err := p.AnyBackend(func(b *Backend) (*capture.Result, error) { return p.captureWith(b, out) }, func() error {
		out.abort()
		return nil
	})
	if err != nil {
		out.abort()
		w.Close()
		if counted.n == 0 {
			_ = removeFiles(p.To)
		}
		return nil, err
	}
	if err := w.Close(); err != nil && res.WriteErr == nil {
		res.WriteErr = err
	}
	if res.WriteErr != nil {
		p.note("the recording is not whole: %v", res.WriteErr)
	}
	p.note("%s calls, %s; %s written to %s", report.Count(res.Events), sealing.LostText(res.Lost),
		report.Bytes(uint64(counted.n)), p.To)
	return &Result{Capture: res}, nil
}

// recordNothing records for Watch alone.
func recordNothing(p *Plan) (*Result, error) {
	sig := p.signals()
	defer sig.Stop()
	out := &output{sink: io.Discard}
	res, err := p.AnyBackend(func(b *Backend) (*capture.Result, error) { return p.captureWith(b, out) },
		func() error { return nil })
	if err != nil {
		return nil, err
	}
	if res.Lost > 0 {
		p.note("%s", sealing.LostText(res.Lost))
	}
	return &Result{Capture: res}, nil
}

// countingWriter counts what a sink took.
type countingWriter struct {
	w io.Writer
	n int64
}

func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	w.n += int64(n)
	return n, err
}
