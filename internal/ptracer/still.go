// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Stop is where a followed thread is stopped.
type Stop int

// The stops.
const (
	Elsewhere Stop = iota // an event that is none of the others
	Running               // it is not stopped
	Resting               // in no call, or in one that begins again when it goes on
	AtSignal              // about to get a signal
	AtEntry               // of a call, which has not begun
	AtExit                // of a call, which has returned
	AtFork                // in a call that made a process or thread
	AtEnd                 // it has begun to end
)

// stopOf returns what a status says of a stop. Those at calls are told apart later.
func stopOf(ws unix.WaitStatus) Stop {
	switch event(ws) {
	case 0:
		if ws.StopSignal() == syscallStop {
			return Elsewhere
		}
		return AtSignal
	case unix.PTRACE_EVENT_STOP:
		return Resting
	case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_CLONE:
		return AtFork
	case unix.PTRACE_EVENT_EXIT:
		return AtEnd
	}
	return Elsewhere
}

// Where returns where the thread is stopped, if it is. For callbacks and Do.
func (t *Tracee) Where() Stop {
	if !t.stopped || t.gone {
		return Running
	}
	return t.at
}

// StopAll stops all followed threads, and what they make, and keeps them stopped wherever they stop from then on.
// Callbacks are called as always. It is for Do, when Run is cancelled (Command.Leaving). A thread that
// cannot be stopped within a second is left running (Tracee.Where).
func (tr *Engine) StopAll() {
	tr.gathering, tr.parting = true, true
	asked := map[*Tracee]bool{}
	for began := time.Now(); time.Since(began) < partPatience; {
		running := len(tr.early) > 0
		for _, t := range tr.tracees {
			if t.stopped {
				continue
			}
			running = true
			if !asked[t] {
				asked[t], t.interrupted = true, true
				_ = ptrace(unix.PTRACE_INTERRUPT, t.TID, 0, 0) // ESRCH: it ended
			}
		}
		if !running {
			return
		}
		var ws unix.WaitStatus
		tid, err := tr.take(&ws, unix.WALL|unix.WNOTHREAD|unix.WNOHANG)
		switch {
		case err == unix.ECHILD:
			return
		case err == nil && tid != 0:
			tr.handle(tid, ws, tr.clock())
		default:
			time.Sleep(gatherPause)
		}
	}
}

// LetGo ends the tracing of all threads that are stopped. Each gets the signal that it stopped for, unless that was
// taken from it. It is for Do, after StopAll.
func (tr *Engine) LetGo() {
	for tid, t := range tr.tracees {
		if t.stopped && ptrace(unix.PTRACE_DETACH, tid, 0, uintptr(t.sig)) == nil {
			t.gone, t.stopped, t.held = true, false, false
			delete(tr.tracees, tid)
		}
	}
}

// Next lets a thread that StopAll has stopped go on until it stops again, which is handled as always. It is for
// threads that are known to stop soon. It returns false if the thread ended.
func (t *Tracee) Next() bool {
	tr := t.tr
	sig := t.sig
	t.stopped, t.held, t.sig = false, false, 0
	if ptrace(unix.PTRACE_CONT, t.TID, 0, uintptr(sig)) != nil {
		return false
	}
	for {
		var ws unix.WaitStatus
		var child childInfo
		if err := child.peekOf(t.TID); err == unix.EINTR {
			continue
		} else if err != nil {
			return false
		}
		var info Siginfo
		if child.code == cldTrapped && child.status == int32(syscall.SIGSYS) && info.get(t.TID) == nil &&
			info.Code == SysUserDispatch && tr.h.Dispatching != nil {
			tr.h.Dispatching(t.TID, &info)
		}
		tid, err := unix.Wait4(t.TID, &ws, unix.WALL|unix.WNOHANG, nil)
		if err != nil && err != unix.EINTR {
			return false
		}
		if tid != 0 && err == nil {
			tr.handle(tid, ws, tr.clock())
			return t.stopped && !t.gone
		}
	}
}

// RunCall lets a stopped thread make the call at its next instruction. A signal that it stopped for waits, if the
// thread blocks it. A call that it stands at is over then. RunCall returns false if the thread ended.
func (t *Tracee) RunCall() bool {
	return t.runToCall(unix.PTRACE_SYSCALL_INFO_ENTRY) && t.runToCall(unix.PTRACE_SYSCALL_INFO_EXIT)
}

// EndCall lets a thread that has stopped in a call go on to its end.
func (t *Tracee) EndCall() bool { return t.runToCall(unix.PTRACE_SYSCALL_INFO_EXIT) }

// runToCall lets a thread go on to the next stop of a kind at a call.
func (t *Tracee) runToCall(op uint8) bool {
	for {
		ws, ok := t.runOn(unix.PTRACE_SYSCALL)
		if !ok {
			return false
		}
		var i syscallInfo
		if event(ws) == 0 && ws.StopSignal() == syscallStop && i.get(t.TID) == nil && i.op == op {
			t.at = AtExit
			if op == unix.PTRACE_SYSCALL_INFO_ENTRY {
				t.at = AtEntry
			}
			return true
		}
	}
}

// Step lets a stopped thread execute one instruction. It returns false if the thread ended.
func (t *Tracee) Step() bool {
	for {
		ws, ok := t.runOn(unix.PTRACE_SINGLESTEP)
		if !ok {
			return false
		}
		if event(ws) == 0 && ws.StopSignal() == syscall.SIGTRAP {
			t.sig, t.at = 0, AtSignal
			return true
		}
	}
}

// Rest makes a stopped thread rest without executing anything. Its registers are to be set then. It returns false if
// the thread ended.
func (t *Tracee) Rest() bool {
	if ptrace(unix.PTRACE_INTERRUPT, t.TID, 0, 0) != nil {
		return false
	}
	for {
		ws, ok := t.runOn(unix.PTRACE_CONT)
		if !ok {
			return false
		}
		if event(ws) == unix.PTRACE_EVENT_STOP {
			t.at = Resting
			return true
		}
	}
}

// runOn lets a thread go on, by a request, with the signal that is due, and waits until it stops.
func (t *Tracee) runOn(request int) (ws unix.WaitStatus, ok bool) {
	if ptrace(request, t.TID, 0, uintptr(t.sig)) != nil {
		return 0, false // killed: the loop is told
	}
	t.sig = 0
	for {
		_, err := unix.Wait4(t.TID, &ws, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, false
		}
		break
	}
	switch {
	case !ws.Stopped():
		t.tr.ended(t, ws)
		return 0, false
	case event(ws) == unix.PTRACE_EVENT_EXIT:
		t.at = AtEnd
		return 0, false
	case event(ws) == 0 && ws.StopSignal() != syscallStop && ws.StopSignal() != syscall.SIGTRAP:
		t.sig = ws.StopSignal() // which cannot be blocked, or is not yet
	}
	return ws, true
}
