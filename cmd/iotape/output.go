package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/sink"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// outputFlags say through what a recording passes, and where it goes.
type outputFlags struct{ pipe, to string }

func (o *outputFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.pipe, "pipe", "", "write the recording through the layers of `CHAIN`: async,zstd:3,encrypt:age1…,checksum:@FILE")
	f.StringVar(&o.to, "to", "", "write the recording, and make no tape, to `WHERE`: a file, device:PATH, unix:PATH, tcp://HOST:PORT, tls://HOST:PORT, or - for standard output")
}

// plan reads the chain. The command does not get the variables that keys were in.
func (o *outputFlags) plan(p *recordPlan, _ func(string) bool) (err error) {
	p.to = o.to
	if o.pipe != "" {
		if p.pipe, err = chain.Parse(o.pipe); err != nil {
			return fmt.Errorf("--pipe: %w", err)
		}
		for _, name := range p.pipe.Variables {
			_ = os.Unsetenv(name)
		}
	}
	return nil
}

// agree sees to it that the other flags fit. It comes after them.
func (o *outputFlags) agree(p *recordPlan, given func(string) bool) error {
	if o.pipe == "" && o.to == "" {
		return nil
	}
	if p.flight != nil {
		return errors.New("--pipe and --to are for recordings that are written as they are made, not for --last")
	}
	if o.to != "" {
		for _, flag := range []string{"output", "seal", "keep-stream", "snapshot", "no-index"} {
			if given(flag) {
				return fmt.Errorf("--%s is for a tape, and --to makes none", flag)
			}
		}
		if o.to == "-" && !p.capture.Running() {
			return errors.New("--to -: standard output is the command's")
		}
		return nil
	}
	if !p.pipe.Encrypted {
		return nil
	}
	switch {
	case len(p.snapshots) > 0:
		return errors.New("--snapshot writes clear text to the disk, and --pipe is to encrypt")
	case given("seal") && p.seal != sealNever:
		return errors.New("a recording that is encrypted cannot be sealed while or after it is made: here is no key to read it")
	}
	p.seal = sealNever
	return nil
}

// keysFor is what iotape seal needs besides.
func keysFor(spec *chain.Spec) (flags string) {
	if spec != nil && spec.Encrypted {
		flags += " --identity FILE"
	}
	if spec != nil && len(spec.Keys.Checksum) > 0 {
		flags += " --key FILE"
	}
	return flags
}

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
		if err = o.mend(end); err != nil {
			err = fmt.Errorf("end the recording: %w", err)
		}
	}
	return writeErr, err
}

// mend ends a stream in order whose writer failed. One that was piped stays as it is:
// who writes cannot read it. It is known to be cut off.
func (o *output) mend(end *trace.End) error {
	if o.guard == nil {
		return nil
	}
	o.guard.release()
	if o.spec != nil {
		return nil
	}
	return mendStream(o.guard.f, end)
}

// recordTo records to a sink, and makes no tape.
func recordTo(ctx context.Context, c *console, p *recordPlan) error {
	w, err := sink.Open(ctx, p.to, &sink.Options{Stdout: c.out, New: true, Note: func(line string) { c.say("%s", line) }})
	if err != nil {
		return fmt.Errorf("--to %w", err)
	}
	defer func() { p.owner.give(sink.Files(p.to)...) }()
	sig := catchSignals()
	defer sig.stop()
	spec := p.pipe
	if spec == nil {
		spec = &chain.Spec{}
	}
	p.capture.Note = func(line string) { c.say("%s", line) }
	counted := &countingWriter{w: w}
	out := &output{spec: spec, sink: counted}
	res, err := anyBackend(c, p, func(b *backend) (*capture.Result, error) { return capturingWith(b, p, out) }, func() error {
		out.abort()
		return nil
	})
	if err != nil {
		out.abort()
		w.Close()
		if counted.n == 0 {
			for _, name := range sink.Files(p.to) {
				os.Remove(name)
			}
		}
		return err
	}
	if err := w.Close(); err != nil && res.WriteErr == nil {
		res.WriteErr = err
	}
	if res.WriteErr != nil {
		c.say("the recording is not whole: %v", res.WriteErr)
	}
	lost := "lost 0"
	if res.Lost > 0 {
		lost = "LOST " + report.Count(res.Lost)
	}
	c.say("%s calls, %s; %s written to %s", report.Count(res.Events), lost, report.Bytes(uint64(counted.n)), p.to)
	return commandStatus(res)
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
