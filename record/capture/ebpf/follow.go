// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/early"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/record/internal/bpf"
)

// delayUnknown says of a followed thread that it has made no call that was recorded
// (DELAY_UNKNOWN in bpf/record.h): how long it waited for a processor before is not told.
const delayUnknown = 1 << 62

const (
	countPause = 100 * time.Millisecond // between two looks at whether there is an end
	watchPause = 2 * time.Millisecond   // between two looks at whether processes entered
)

// follower makes threads followed ones: by the programs, and, where threads are held
// rather than records lost, by the tracer.
type follower struct {
	p  *programs
	d  *drain
	o  *capture.Options
	c  *config
	tr *ptracer.Engine

	guardian *guardian

	state   running.State
	known   map[int]bool // threads that were followed because they were found
	entered uint64       // processes that entered the cgroup and were found
	counted time.Time
	over    chan struct{} // closed when the recording is
	watcher sync.WaitGroup
}

// command is the tracer's gate: the process is about to become the command.
func (f *follower) command(pid int) error {
	if err := f.prepare(); err != nil {
		return err
	}
	f.d.begin(running.AppendCommand(nil, pid, bpf.Now()))
	if err := f.p.follow(pid, f.task(pid, 0)); err != nil {
		return err
	}
	f.started(pid)
	return nil
}

// prepare readies the tracing thread, which calls it: it is in a hurry from now on, and
// if it may hold threads a guardian watches over it.
func (f *follower) prepare() (err error) {
	if f.c.block {
		f.guardian, err = startGuardian(f.p.Holding)
	}
	hurry()
	return err
}

// dismiss ends what prepare and attach began, once f.over is closed.
func (f *follower) dismiss() {
	f.watcher.Wait() // it looks at the memory that is shared with the programs
	if f.guardian != nil {
		f.guardian.stop()
	}
}

func (f *follower) started(pid int) {
	bpf.ForgetTypes()
	if f.o.Started != nil {
		f.o.Started(pid)
	}
}

func (f *follower) task(tid int, flags uint32) bpf.Task {
	return bpf.Task{Shard: uint32(tid) & uint32(f.c.shards-1), Flags: flags, Enter: bpf.Now(), Returned: delayUnknown}
}

// attach follows what runs already. It is called on the tracing thread.
func (f *follower) attach() error {
	if err := f.prepare(); err != nil {
		return err
	}
	f.known = map[int]bool{}
	f.state.Env = f.o.Environ
	f.d.describing.Store(bpf.Now())
	f.entered = atomic.LoadUint64(&f.p.shared.Entered)
	if err := f.find(); err != nil {
		return err
	}
	if len(f.known) == 0 && len(f.o.PIDs) > 0 {
		return &capture.NoProcessError{PIDs: f.o.PIDs}
	}
	f.d.begin(f.state.AppendChanges(nil, bpf.Now()))
	f.d.describing.Store(0)
	if f.o.Cgroup != "" {
		f.watcher.Go(f.watch)
	}
	if f.o.Attached != nil {
		f.o.Attached(f.state.Count)
	}
	f.started(0)
	return nil
}

func (f *follower) note(format string, args ...any) {
	if f.o.Note != nil {
		f.o.Note(fmt.Sprintf(format, args...))
	}
}

// find follows the threads of all processes that are to be recorded, again and again
// until none is new: those that are not followed yet may make others. From then on
// the programs and the kernel's tracing follow what threads make.
//
// Of the whole machine the programs find all threads by themselves, once they are
// attached, which is after what runs was described.
func (f *follower) find() error {
	unheld, why := 0, error(nil)
	attached := !f.o.All
	for {
		at := bpf.Now()
		processes := f.strangers()
		if len(processes) == 0 {
			break
		}
		f.d.begin(f.state.Append(nil, at, processes))
		if !attached {
			f.exclude()
			if err := f.p.attach(f.c); err != nil {
				return err
			}
			attached = true
		}
		for _, p := range processes {
			for _, tid := range p.Threads {
				f.known[tid] = true
				if err := f.join(p.PID, tid); err != nil {
					unheld, why = unheld+1, cmp.Or(why, err)
				}
			}
		}
	}
	if unheld > 0 {
		f.note("%d threads will not be held when the recorder falls behind; what that loses is counted (%v)", unheld,
			why)
	}
	return nil
}

// exclude keeps the recorder's children out of a recording of the whole machine.
func (f *follower) exclude() {
	for _, pid := range bpf.OwnProcesses() {
		for _, tid := range running.Threads(pid) {
			_ = f.p.follow(tid, f.task(tid, bpf.TaskExcluded)) // ended
		}
	}
}

// watch takes up processes that enter the cgroup. The programs follow them at once;
// here they are described and held.
func (f *follower) watch() {
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	for {
		select {
		case <-f.over:
			return
		case <-tick.C:
		}
		n := atomic.LoadUint64(&f.p.shared.Entered)
		if n == f.entered {
			continue
		}
		f.entered = n
		done := make(chan struct{})
		f.tr.Do(func() {
			defer close(done)
			f.d.describing.Store(bpf.Now())
			_ = f.find() // attached already
			f.d.describing.Store(0)
		})
		select {
		case <-done:
		case <-f.over:
			return
		}
	}
}

// strangers returns the threads that are not followed yet.
func (f *follower) strangers() []running.Process {
	var list []running.Process
	for _, pid := range bpf.Targets(f.o) {
		p := running.Process{PID: pid}
		for _, tid := range running.Threads(pid) {
			if !f.known[tid] {
				p.Threads = append(p.Threads, tid)
			}
		}
		if len(p.Threads) > 0 {
			list = append(list, p)
		}
	}
	return list
}

// join follows a thread. It fails only if the thread cannot be held, though it should.
func (f *follower) join(pid, tid int) error {
	if f.o.All && !f.c.block {
		return nil
	}
	if err := f.p.follow(tid, f.task(tid, bpf.TaskJoined)); err != nil || !f.c.block {
		return nil // ended
	}
	if err := f.tr.Seize(pid, tid); err != nil && unix.Tgkill(pid, tid, 0) == nil {
		return err
	}
	return nil
}

// idle reports whether nothing is left to record.
func (f *follower) idle() bool {
	if time.Since(f.counted) < countPause {
		return false
	}
	f.counted = time.Now()
	switch {
	case f.o.All:
		return false
	case f.o.Cgroup != "":
		_, err := os.Stat(f.o.Cgroup)
		return errors.Is(err, os.ErrNotExist)
	}
	n, err := bpf.CountFollowed(f.p.loaded[countFollowed], &f.p.shared.Followed)
	return err == nil && n == 0
}

// leaving makes the programs record nothing more, and waits until the threads that
// they told to stop have come to it: nobody would let them go on later.
func (f *follower) leaving() {
	const patience = 2 * time.Second
	f.p.release()
	for began, quiet := time.Now(), 0; quiet < 2 && time.Since(began) < patience; {
		time.Sleep(2 * time.Millisecond)
		if f.d.hooksRun() || f.stopping() {
			quiet = 0
		} else {
			quiet++
		}
	}
}

// stopping reports whether a thread that was told to stop has yet to take the signal.
func (f *follower) stopping() bool {
	var tid uint32
	var h iotapeHeld
	for entries := f.p.Holding.Iterate(); entries.Next(&tid, &h); {
		dir := "/proc/" + strconv.Itoa(int(h.Pid)) + "/task/" + strconv.Itoa(int(tid))
		if status, err := os.ReadFile(dir + "/status"); err == nil && early.IsPending(status, syscall.Signal(h.Sig)) {
			return true
		}
	}
	return false
}

// hooksRun reports whether a program is at work.
func (d *drain) hooksRun() bool {
	for i := range d.p.shared.Cpus {
		if atomic.LoadUint64(&d.p.shared.Cpus[i].Active) != 0 {
			return true
		}
	}
	return false
}
