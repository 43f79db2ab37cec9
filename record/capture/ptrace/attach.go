// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/running"
)

// Attach returns what makes the tracer follow processes that run already, with all threads and
// children. What they have is described while they stand still, so that it is what their first calls find. Then
// still is called, before they go on.
func (r *Recorder) Attach(still func()) *ptracer.Command {
	described := func() {
		r.describe()
		still()
	}
	return &ptracer.Command{Keep: r.o.Keep, Idle: func() bool { return true }, Attach: func() error {
		if err := r.tr.Gather(r.targets, r.refusedThread, described); err != nil {
			return err
		}
		if r.live == 0 {
			return &capture.NoProcessError{PIDs: r.o.PIDs}
		}
		if r.o.Attached != nil {
			r.o.Attached(r.attached)
		}
		if r.o.Started != nil {
			r.o.Started(0)
		}
		return nil
	}}
}

// targets returns the threads that are to be recorded now: not the recorder's own.
func (r *Recorder) targets() (list []ptracer.Thread) {
	own := running.Tree([]int{os.Getpid()})
	for _, pid := range running.Tree(r.o.PIDs) {
		if slices.Contains(own, pid) {
			continue
		}
		for _, tid := range running.Threads(pid) {
			list = append(list, ptracer.Thread{PID: pid, TID: tid})
		}
	}
	return list
}

// refusedThread is told of a thread that may not be traced. That is an error for a process that
// the user named; of others it is said.
func (r *Recorder) refusedThread(t ptracer.Thread, err error) error {
	why := fmt.Errorf("record process %d: %w", t.PID, errors.Unwrap(err))
	if tracer, name := ptracer.TracerOf(t.TID); tracer != 0 {
		why = fmt.Errorf("record process %d: process %d (%s) traces it, and there can be only one",
			t.PID, tracer, name)
	} else if scope := yama(); errors.Is(err, unix.EPERM) && scope != "0" && scope != "" {
		why = fmt.Errorf("%w: only administrators may trace what runs already (kernel.yama.ptrace_scope is %s)",
			why, scope)
	} else if errors.Is(err, unix.EPERM) {
		why = fmt.Errorf("%w: it is another user's or has more rights than the recorder; record it as root", why)
	}
	if slices.Contains(r.o.PIDs, t.PID) {
		return &capture.UnsupportedError{Backend: "ptrace", Feature: "permission to trace", Reason: why}
	}
	if r.o.Note != nil && t.TID == t.PID {
		r.o.Note(fmt.Sprintf("not recorded: %v", why))
	}
	return nil
}

// yama returns the kernel's setting of who may trace whom, "" if it has none.
func yama() string {
	b, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	return string(bytes.TrimSpace(b))
}

// describe writes what the followed processes have when recording begins.
func (r *Recorder) describe() {
	threads := map[int][]int{}
	r.tr.Threads(func(t *ptracer.Tracee) {
		th := r.newThread(t)
		th.task, _ = r.proc.task(t.TID)
		threads[t.PID] = append(threads[t.PID], t.TID)
	})
	var processes []running.Process
	for _, pid := range running.Tree(r.o.PIDs) { // makers before those that they made
		if list := threads[pid]; len(list) > 0 {
			processes = append(processes, running.Process{PID: pid, Threads: list})
			delete(threads, pid)
		}
	}
	for pid, list := range threads { // whose maker has ended meanwhile
		processes = append(processes, running.Process{PID: pid, Threads: list})
	}
	r.started = true
	state := running.State{Env: r.o.Environ}
	r.out.append(state.Append(nil, now(), processes), 0, 0)
	r.attached = state.Count
}
