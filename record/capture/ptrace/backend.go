// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// Backend is the ptrace back end. The zero value is ready to use.
type Backend struct{}

var _ capture.Backend = Backend{}

// Name returns "ptrace".
func (Backend) Name() string { return "ptrace" }

// Run records a command, or processes that run already; see capture.Backend and the package's page.
func (Backend) Run(ctx context.Context, o *capture.Options, sw *trace.StreamWriter) (*capture.Result, error) {
	if o.All || o.Cgroup != "" {
		return nil, &capture.UnsupportedError{Backend: "ptrace", Feature: "a command or processes (--pid)"}
	}
	r, err := NewRecorder(o, sw)
	if err != nil {
		return nil, err
	}
	cmd := CommandOf(o)
	if o.Running() {
		cmd = r.Attach(func() {})
	}
	through := exemptOf(o, r.arch)
	if o.Survive || o.Running() {
		cmd.EveryCall = true
		r.letThrough(through)
	} else if cmd.Filter, err = filter(through); err != nil {
		return nil, err
	}
	return r.Run(ctx, cmd, r.Handler())
}

// NewRecorder returns a recorder of what a tracer tells: for this back end, and for those
// that have another way for most calls.
func NewRecorder(o *capture.Options, sw *trace.StreamWriter) (*Recorder, error) {
	arch, ok := event.ParseArch(runtime.GOARCH)
	if !ok {
		return nil, &capture.UnsupportedError{Backend: "ptrace", Feature: "an operation table for " + runtime.GOARCH}
	}
	return newRecorder(o, arch, sw), nil
}

// CommandOf returns the command that the options want recorded.
func CommandOf(o *capture.Options) *ptracer.Command {
	return &ptracer.Command{Argv: o.Command, Dir: o.Dir, Env: o.Env, Credential: o.Credential,
		Keep: o.Keep, Suspend: o.Suspend, Files: [3]*os.File{o.Stdin, o.Stdout, o.Stderr}}
}

// exemptOf lists the calls that need not be recorded.
func exemptOf(o *capture.Options, arch event.Arch) []Exempt {
	through := Untraced()
	if o.EveryCall {
		through = nil
	}
	through = stopForStacks(o, through)
	const most = 250 // that a filter can let through
	for _, e := range refused(o.Prefilter, arch) {
		if known := slices.ContainsFunc(through, func(x Exempt) bool { return x.NR == e.NR }); !known &&
			len(through) < most && !(o.Stacks != nil && mapsMemory(event.ByNumber(arch, e.NR))) {
			through = append(through, e)
		}
	}
	return through
}

// Exempt makes the recorder leave out what the options do not want, and returns the numbers
// of these calls.
func (r *Recorder) Exempt() (numbers []int) {
	through := exemptOf(r.o, r.arch)
	r.letThrough(through)
	for _, e := range through {
		numbers = append(numbers, e.NR)
	}
	return numbers
}

// Run runs a command. h is Handler's, or one that calls its callbacks.
func (r *Recorder) Run(ctx context.Context, cmd *ptracer.Command, h *ptracer.Handler) (*capture.Result, error) {
	r.tr = ptracer.New(cmd, h)
	r.out.shared = r.Finish != nil
	begin := time.Now()
	stopFlushing := r.flushRegularly()
	stopWatching := context.AfterFunc(ctx, func() { r.tr.Do(r.stop) })
	st, err := r.tr.Run(ctx)
	stopWatching()
	stopFlushing()
	if r.Finish != nil {
		r.Finish()
	}
	r.close()
	if err != nil {
		var setup *ptracer.SetupError
		if errors.As(err, &setup) {
			return nil, &capture.UnsupportedError{Backend: "ptrace", Feature: setup.Feature, Reason: setup.Err}
		}
		return nil, err
	}
	return &capture.Result{
		ExitStatus: st.Exit, Signal: int(st.Signal), Events: r.events + r.out.others,
		Lost: r.out.lost, Elapsed: time.Since(begin), WriteErr: r.out.err,
	}, nil
}

// flushRegularly writes what is buffered while programs are quiet.
func (r *Recorder) flushRegularly() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(cmp.Or(r.o.Latency, flushEvery))
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if r.stores.some.Load() {
					r.tr.Do(r.stores.tick)
				}
				if r.urings.some.Load() {
					r.tr.Do(r.urings.tick)
				}
				if r.out.pending.CompareAndSwap(true, false) {
					r.tr.Do(func() { r.out.flush(now()) })
				}
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
