// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// gatherPatience is how long Gather waits for a thread that neither stops nor sleeps in the kernel.
	gatherPatience = 2 * time.Second
	partPatience   = time.Second
	gatherPause    = 200 * time.Microsecond
)

// Thread is a thread that runs already.
type Thread struct{ PID, TID int }

// Gather follows running threads and stops them, for Command.Attach. It asks for more again and
// again, until it follows all that find returns. Then it calls still, while none of them
// runs, and lets them go on. Until then no callback of the Handler is called: what happens to
// threads that are not known yet is part of what still finds.
//
// A thread that cannot be followed is told to refused, whose error ends Gather. One that
// sleeps in the kernel and cannot be stopped there (a slow disk, vfork) is not waited for: it stops when its
// call is over.
//
// A call that a thread waits in goes on as if nothing had happened, also if the kernel ends it with EINTR for
// a stop (signal(7)), on amd64; on arm64 such a call ends with EINTR.
func (tr *Engine) Gather(find func() []Thread, refused func(Thread, error) error, still func()) error {
	h := tr.h
	tr.h, tr.gathering = &Handler{}, true
	failed := map[Thread]bool{}
	for {
		found := false
		threads := find()
		// A process's first thread comes last: while it is not traced the kernel forgets signals that are
		// ignored, and wakes no other thread for them, which may be in a call.
		slices.SortStableFunc(threads, func(a, b Thread) int {
			return cmp.Compare(btoi(a.TID == a.PID), btoi(b.TID == b.PID))
		})
		for _, t := range threads {
			if tr.tracees[t.TID] != nil || failed[t] {
				continue
			}
			if err := tr.Seize(t.PID, t.TID); err == nil {
				tr.interrupt(t)
				found = true
			} else if !ended(t.TID) {
				failed[t] = true
				if err := refused(t, err); err != nil {
					return err
				}
			}
		}
		if !found {
			break
		}
		if err := tr.standStill(); err != nil {
			return err
		}
	}
	still()
	tr.h, tr.gathering = h, false
	for _, t := range tr.tracees {
		t.Resume()
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// interrupt stops a thread that is followed, or that its maker's stop will tell of: then it stops by itself.
func (tr *Engine) interrupt(of Thread) {
	if t := tr.tracees[of.TID]; t != nil {
		t.interrupted = true
		_ = ptrace(unix.PTRACE_INTERRUPT, t.TID, 0, 0) // ESRCH: it ended
		return
	}
	tr.add(of.TID, of.PID)
}

// standStill waits until no followed thread runs.
func (tr *Engine) standStill() error {
	for began := time.Now(); ; {
		var ws unix.WaitStatus
		tid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD|unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR:
		case err == unix.ECHILD:
			return nil
		case err != nil:
			return err
		case tid != 0:
			if tr.tracees[tid] == nil && ws.Stopped() {
				tr.add(tid, threadGroup(tid))
			}
			tr.handle(tid, ws, tr.clock())
		case !tr.runs() || time.Since(began) > gatherPatience:
			return nil
		default:
			time.Sleep(gatherPause)
		}
	}
}

// part readies the threads to be let go, whose calls all stop. A signal that the program ignores may
// have woken one that waits in a call, and without a tracer it would see that. So it is stopped, and
// makes its call again when there is no tracer; so is one that is in no call, and could begin one.
// Others are not: their calls could end early.
func (tr *Engine) part() {
	tr.h, tr.gathering, tr.parting = &Handler{}, true, true
	var waiting []*Tracee
	for _, t := range tr.tracees {
		if !t.stopped && (!t.inCall || onlyWaits(t.nr)) {
			t.interrupted = true
			_ = ptrace(unix.PTRACE_INTERRUPT, t.TID, 0, 0)
			waiting = append(waiting, t)
		}
	}
	for began := time.Now(); len(waiting) > 0 && time.Since(began) < partPatience; {
		var ws unix.WaitStatus
		tid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD|unix.WNOHANG, nil)
		switch {
		case err == unix.ECHILD:
			return
		case err == nil && tid != 0:
			tr.handle(tid, ws, tr.clock())
		default:
			time.Sleep(gatherPause)
		}
		waiting = slices.DeleteFunc(waiting, func(t *Tracee) bool { return t.gone || t.stopped || !t.interrupted })
	}
}

// runs reports whether a followed thread has still to stop.
func (tr *Engine) runs() bool {
	for _, t := range tr.tracees {
		if !t.born && !strings.HasPrefix(statusLine(strconv.Itoa(t.TID), "State:"), "D") {
			return true
		}
	}
	return false
}

func ended(tid int) bool {
	state := statusLine(strconv.Itoa(tid), "State:")
	return state == "" || strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

// TracerOf returns the thread that traces a thread, and the name of its program; 0 if none does.
func TracerOf(tid int) (tracer int, name string) {
	if tracer = tracerOf(tid); tracer != 0 {
		name = nameOf(tracer)
	}
	return tracer, name
}
