// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/initialtree"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
	"github.com/iotape/iotape/replay/schedule"
	"github.com/iotape/iotape/replay/verify"
	"github.com/iotape/iotape/trace"
)

// inside is what the child process has beside its configuration.
type inside struct {
	procFD      int  // /proc/self/fd
	namesFD     int  // the same for names of the tape; -1: these could lead out
	ruleset     int  // of Landlock, -1 if there is none
	bare        bool // there is no mount namespace
	log         *result.Log
	annotations *plan.Annotations // nil: they do not count
	found       *linearize.Order  // of the events; nil: it is not known
	confinement result.Confinement
}

// errAborted stops a replay at its first difference.
var errAborted = errors.New("a result differs")

// run does all events of a tape in the present root directory.
func run(ctx context.Context, t *trace.Tape, c *Config, in *inside, progress func(Progress)) (Answer, error) {
	if c.Part == nil && sharesDirectories() {
		c.Order = order.Recorded
		in.confinement.Missing = append(in.confinement.Missing,
			"working directories of threads (unshare is refused): calls are made one after the other, "+
				"as with --order recorded")
	}
	planned := &plan.Config{
		Layout: c.Layout, Tainted: c.Tainted, Generated: c.Data.Made, Elsewhere: c.Elsewhere,
		Specials: c.Specials, Order: c.Order, Native: c.Native, Annotations: in.annotations, Found: in.found,
	}
	config := &schedule.Config{Pace: c.Pace, Speed: c.Speed, Sleep: c.Sleep}
	if c.Part != nil {
		planned.Team = c.Part.Members
		config.Team, config.Member = c.Part.Link, c.Part.Index
	}
	planner, err := plan.New(t, planned)
	if err != nil {
		return Answer{}, err
	}
	var d *schedule.Dispatcher
	checks := &verify.Config{
		Tape: t, Arch: initialtree.Arch(t), Checks: c.Checks, Privileged: c.Privileged, Root: unix.Geteuid() == 0,
		Log: in.log, LeftOut: c.LeftOut, Target: c.Target, Others: c.Others, Overlays: c.Overlays,
		Renamed: slices.ContainsFunc(c.Layout, func(h eventsource.Host) bool { return len(h.Renames) > 0 }),
	}
	if c.Abort {
		checks.Difference = func() { d.Stop(errAborted) }
	}
	report := result.New()
	checker := verify.NewChecker(checks, report)
	config.Progress = func(events uint64) { progress(Progress{events, checker.Different()}) }
	x := &executor{report: report, env: environment{
		root: checks.Root, single: c.Order == order.Recorded, privileged: c.Privileged, native: c.Native,
		checks: c.Checks, procFD: in.procFD, namesFD: in.namesFD, ruleset: in.ruleset, bare: in.bare,
		check: checker, log: in.log,
		dirs: directories{fds: map[uint64]int{}},
		stop: func(err error) { d.Stop(err) }, halted: func() bool { return d.Halted() },
	}}
	x.env.fifos.Store(c.FIFOs)
	x.env.space.init(&c.Limits)
	config.Planner, config.Executor = planner, x
	config.Loader = plan.NewLoader(t, c.Data, c.Checks&options.CheckData != 0, checker.Uncompared)
	d = schedule.NewDispatcher(config)
	if c.Limits.Time > 0 {
		defer time.AfterFunc(c.Limits.Time, func() { d.Stop(c.Limits.errTime()) }).Stop()
	}
	err = d.Run(ctx)
	x.env.dirs.close()
	if err == errAborted {
		report.Aborted, err = true, nil
	}
	if !x.keeps.Load() {
		in.confinement.InForce = append(in.confinement.InForce, "capabilities dropped", "no_new_privs")
	}
	report.Confinement.Add(in.confinement)
	report.LeftOff.Add(x.env.leftOff.result())
	x.tally.Fill(report, d.Timebase().Timing(&x.total))
	if c.KeepTimes {
		x.tally.KeepTimes(report)
	}
	return Answer{Report: report, Tainted: planner.Tainted(), BeganNS: d.Timebase().Began(&x.total)}, err
}

// sharesDirectories reports whether the threads of this process cannot have working directories of their own:
// containers refuse unshare by default. A thread tries it, and ends.
func sharesDirectories() bool {
	refused := make(chan bool)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		refused <- unix.Unshare(unix.CLONE_FS) != nil
	}()
	return <-refused
}

// executor does the tasks of a replay.
type executor struct {
	env    environment
	report *result.Report // its counts of events are used by the dispatcher's goroutine
	mu     sync.Mutex     // of merging what the workers have
	tally  result.Tally   // by the dispatcher's goroutine first, which hands out the last step after it
	total  schedule.Pacer
	keeps  atomic.Bool // a worker could not drop its capabilities
}

var _ schedule.Executor = (*executor)(nil)

// Planned counts a task.
func (x *executor) Planned(t *plan.Task, here bool) {
	if here {
		x.count(t)
	}
	if here && t.Omits {
		x.report.Omit(result.Omission{
			Op: t.Op.String(), Reason: t.Explain(), Count: 1, Seq: t.Event.Seq, Path: t.Event.Name(),
		})
	}
	switch {
	case t.Action != plan.Emulate:
		if makesFIFO(&t.Event) {
			x.env.fifos.Store(true)
		}
	case t.Event.Kind == event.Call && x.env.log.Skips():
		x.env.log.Skipped(t.Event.Seq, t.TID, t.Op, t.Event.Name(), t.Explain())
	}
	if here && t.MakesCall() && !t.Order.Idle {
		x.tally.Recorded(t.Op, t.Bytes(), t.Event.Enter, t.Event.Exit)
	}
}

// count counts an event.
func (x *executor) count(t *plan.Task) {
	r := x.report
	if !t.Rest {
		r.Events++
	}
	switch {
	case t.Action != plan.Emulate:
		r.Replayed++
	case t.Op == event.OpUnknown && t.Event.Kind == event.Call:
		r.Skipped++
	default:
		r.Emulated++
	}
}

// Remote notes the working directory that a task of another member goes to.
func (x *executor) Remote(t *plan.Task) {
	if t.Dir.Sets == 0 {
		return
	}
	dir := ""
	if len(t.Event.Paths) > 0 {
		dir = t.Event.Paths[0].Abs
	} else if len(t.Event.Files) > 0 {
		dir = t.Event.Files[0].Path
	}
	x.env.dirs.name(t.Dir.Sets, dir)
}

// Work does the steps of a queue.
func (x *executor) Work(c *schedule.Consumer) {
	// Not unlocked: the thread's file-system state is its own and ends with it.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil && !x.env.single {
		x.env.stop(fmt.Errorf("separate a thread's working directory: %w", err))
	}
	if err := dropCapabilities(x.env.root, x.env.native.Requests); err != nil {
		if x.env.bare { // which could leave its root directory
			x.env.stop(fmt.Errorf("drop capabilities: %w", err))
			return
		}
		x.env.check.Problem(fmt.Sprintf("drop capabilities: %v", err))
		x.keeps.Store(true)
	}
	if err := restrict(x.env.ruleset); err != nil {
		x.env.stop(fmt.Errorf("restrict a thread to the target (landlock): %w", err))
		return
	}
	w := newWorker(&x.env, c)
	c.Run(w.step)
	w.close()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tally.Merge(&w.tally)
	x.total.Merge(&c.Pacer)
}
