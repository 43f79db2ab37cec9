package ebpf

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"iotape/capture"
	"iotape/internal/ptracer"
	"iotape/trace"
)

const name = "ebpf"

// settle is how long threads that were told to stop may take to come to it, before
// they are left alone.
const settle = 50 * time.Millisecond

// Source is the back end. Its zero value is ready.
type Source struct{}

var _ capture.Source = Source{}

// Name returns "ebpf".
func (Source) Name() string { return name }

// Shards returns how many shards a recording has, the recorder's own included.
func Shards(o *capture.Options) int {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		cpus = 1
	}
	return newConfig(o, cpus).shards + 1
}

// Run records o.Command.
func (Source) Run(ctx context.Context, o *capture.Options, sw *trace.StreamWriter) (*capture.Result, error) {
	if err := probeFeatures(); err != nil {
		return nil, err
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		cpus = 1
	}
	c := newConfig(o, cpus)
	p, err := load(&c)
	if err != nil {
		return nil, err
	}
	defer p.close()
	d, err := newDrain(p, sw, o.Content)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if c.block {
		g, err := startGuardian(p.Holding)
		if err != nil {
			return nil, err
		}
		defer g.stop()
	}
	if err := p.attach(); err != nil {
		return nil, err
	}

	gate := func(pid int) error {
		hurry()
		d.begin(startRecords(pid))
		if err := p.follow(pid, uint32(c.shards-1)); err != nil {
			return err
		}
		if o.Started != nil {
			o.Started(pid)
		}
		return nil
	}
	tr := ptracer.New(&ptracer.Command{
		Argv: o.Command, Dir: o.Dir, Env: o.Env, Files: [3]*os.File{o.Stdin, o.Stdout, o.Stderr}, Gate: gate,
	}, &ptracer.Handler{Signal: d.signalled})
	d.tr = tr

	// A cancelled recording first lets go of the threads that it holds.
	inner, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	defer context.AfterFunc(ctx, func() {
		p.release()
		time.Sleep(settle)
		leave()
	})()

	drained := make(chan struct{})
	go func() {
		defer close(drained)
		runtime.LockOSThread() // and not unlocked: the thread ends here
		hurry()
		d.run()
	}()
	began := time.Now()
	st, err := runTracer(inner, tr)
	elapsed := time.Since(began)
	p.detach()
	d.finish()
	<-drained
	if err != nil {
		var se *ptracer.SetupError
		if errors.As(err, &se) {
			return nil, unsupported(se.Feature, se.Err)
		}
		return nil, err
	}
	return &capture.Result{
		ExitStatus: st.Exit, Signal: int(st.Signal),
		Events: d.events, Lost: d.lost, Stops: d.stops.Load(),
		Elapsed: elapsed, WriteErr: d.err,
	}, nil
}

// runTracer runs tr on a thread of its own, which ends with it: hurry changed it.
func runTracer(ctx context.Context, tr *ptracer.Tracer) (st ptracer.Status, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		st, err = tr.Run(ctx)
	}()
	<-done
	return st, err
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
	if sig != syscall.SIGSTOP { // else the guardian still needs it
		_ = d.p.Holding.Delete(tid)
	}
	d.hold(t)
	return ptracer.Hold
}
