// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/internal/bpf"
	"github.com/iotape/iotape/trace"
)

const name = "ebpf"

// Backend is the eBPF back end. Its zero value is ready.
type Backend struct{}

var _ capture.Backend = Backend{}

// Name returns "ebpf".
func (Backend) Name() string { return name }

// Shards returns how many shards a recording has, the recorder's own included.
func Shards(o *capture.Options) int {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		cpus = 1
	}
	return newConfig(o, cpus).shards + 1
}

// Run records what o says.
func (Backend) Run(ctx context.Context, o *capture.Options, sw *trace.StreamWriter) (*capture.Result, error) {
	if err := bpf.CheckRight(); err != nil { // of most ordinary users: before anything is parsed
		return nil, err
	}
	object := sync.OnceValues(loadIotape)
	go object() // which takes as long as to parse the kernel's types, for the check
	if err := bpf.CheckRecording(); err != nil {
		return nil, err
	}
	c, err := configure(o)
	if err != nil {
		return nil, err
	}
	c.object = object
	p, err := load(&c)
	if err != nil {
		return nil, err
	}
	defer p.close()
	p.noteUnseen(o)
	d, err := newDrain(p, sw, o)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if p.stacks != nil {
		defer p.stacks.report(d.note)
	}
	if !o.All {
		if err := p.attach(&c); err != nil {
			return nil, err
		}
	}
	f := &follower{p: p, d: d, o: o, c: &c, over: make(chan struct{})}
	defer f.dismiss()
	defer close(f.over)
	if o.Control != nil {
		w := &opener{p: p, c: &c, open: o.Prefilter == nil}
		defer w.end()
		o.Control(w)
	}
	cmd := &ptracer.Command{Keep: o.Keep, Suspend: o.Suspend, Leaving: f.leaving}
	if o.Running() {
		cmd.Attach, cmd.Idle = f.attach, f.idle
	} else {
		cmd.Argv, cmd.Dir, cmd.Env, cmd.Files = o.Command, o.Dir, o.Env, [3]*os.File{o.Stdin, o.Stdout, o.Stderr}
		cmd.Credential = o.Credential
		cmd.Gate = f.command
	}
	f.tr = ptracer.New(cmd, &ptracer.Handler{Signal: d.signalled})
	d.tr = f.tr

	drained := make(chan struct{})
	go func() {
		defer close(drained)
		runtime.LockOSThread() // and not unlocked: the thread ends here
		hurry()
		d.run()
	}()
	if c.block && o.HoldMax > 0 {
		f.watcher.Go(func() { d.supervise(o.HoldMax, f.over) })
	}
	began := time.Now()
	st, err := f.tr.Run(ctx)
	elapsed := time.Since(began)
	p.detach()
	d.finish()
	<-drained
	if err != nil {
		var se *ptracer.SetupError
		if errors.As(err, &se) {
			return nil, bpf.Unsupported(se.Feature, se.Err)
		}
		return nil, err
	}
	return &capture.Result{
		ExitStatus: st.Exit, Signal: int(st.Signal),
		Events: d.events, Lost: d.lost, Stops: d.stops.Load(),
		Elapsed: elapsed, WriteErr: d.err,
	}, nil
}

// hurry lets the calling thread run before programs: what it does is short, and
// threads may be waiting for it. Without the right to do so it goes on as it was.
func hurry() {
	const nice = -10
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
}

// signalled sees each signal before its thread: those of the programs stay here. A
// thread that a program told to stop is listed with its signal.
func (d *drain) signalled(t *ptracer.Tracee, sig syscall.Signal, info *ptracer.Siginfo) ptracer.Verdict {
	if info.Code != ptracer.SIKernel {
		return ptracer.Deliver
	}
	var h iotapeHeld
	tid := uint32(t.TID)
	if d.p.Holding.Lookup(tid, &h) != nil || h.Sig != uint32(sig) {
		return ptracer.Deliver
	}
	stops := sig == syscall.SIGSTOP // it is still about to be delivered
	if !stops {
		_ = d.p.Holding.Delete(tid)
	}
	d.hold(t, stops)
	return ptracer.Hold
}
