// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// event returns the PTRACE_EVENT_* of a stop, 0 for others.
func event(ws unix.WaitStatus) int { return int(ws) >> 16 & 0xff }

const (
	syscallStop = syscall.SIGTRAP | 0x80 // PTRACE_O_TRACESYSGOOD

	// batch is how many stops are taken before the first is handled, so that a
	// few busy threads, which wait4 finds first, do not starve the others.
	batch = 32

	// restartSys is what a call returns that is to be made again (ERESTARTSYS, linux/errno.h).
	restartSys = 512

	// adoptAfter is how long a new thread is kept waiting for its parent's word
	// about it. The word never comes if the parent is killed in between.
	adoptAfter = 300 * time.Millisecond
)

// stop is what wait4 told of a thread.
type stop struct {
	tid    int
	status unix.WaitStatus
	seen   uint64 // Handler.Clock
}

// begins reports whether the i-th stop is at the beginning of a call, or of a thread with
// several, which keep their order: it was killed.
func begins(stops []stop, i int) bool {
	if s := stops[i].status; s.Stopped() && event(s) == unix.PTRACE_EVENT_SECCOMP {
		return true
	}
	for _, s := range stops {
		if s.tid == stops[i].tid && s != stops[i] {
			return true
		}
	}
	return false
}

// loop handles stops until nothing is left to follow.
func (tr *Engine) loop() error {
	stops := make([]stop, 0, batch)
	for {
		tr.runQueue()
		none := len(tr.tracees)+len(tr.early) == 0
		if !tr.leaving && none && !tr.linger() {
			return nil
		}
		var err error
		stops, err = tr.wait(stops[:0], none)
		if err == unix.ECHILD {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for traced programs: %w", err)
		}
		// First those that let no call begin: what a callback looks up at the end of a call
		// is then as it was when the thread stopped, but for calls that were under way.
		for i, s := range stops {
			if !begins(stops, i) {
				tr.handle(s.tid, s.status, s.seen)
			}
		}
		for i, s := range stops {
			if begins(stops, i) {
				tr.handle(s.tid, s.status, s.seen)
			}
		}
		if tr.leaving && len(stops) == 0 {
			for _, t := range tr.tracees {
				t.Resume() // without the signal that held it
			}
			return nil
		}
	}
}

// wait appends stops, up to a batch. It blocks for the first, unless the engine is leaving
// or has no threads. The error is ECHILD if nothing is left to wait for.
func (tr *Engine) wait(stops []stop, none bool) ([]stop, error) {
	flags := unix.WALL | unix.WNOTHREAD // other threads may be tracers of their own
	// When leaving, once more for what has stopped already. Without threads, other
	// children of the recorder must not keep it from looking whether that is the end.
	if tr.leaving || none {
		flags |= unix.WNOHANG
	}
	for ; len(stops) < batch; flags |= unix.WNOHANG {
		var ws unix.WaitStatus
		tr.waiting.Store(len(stops) == 0)
		tid, err := tr.take(&ws, flags)
		tr.waiting.Store(false)
		switch {
		case err == unix.EINTR || err == nil && tid == 0:
			return stops, nil
		case err == unix.ECHILD && (len(stops) > 0 || tr.leaving || tr.linger()):
			return stops, nil
		case err != nil:
			return stops, err
		}
		stops = append(stops, stop{tid, ws, tr.clock()})
		if len(stops) == 1 {
			tr.since.Store(stops[0].seen)
		}
	}
	return stops, nil
}

// take takes one stop or end from the kernel, as wait4 does. A dispatched call is readied before (Handler.Dispatching).
func (tr *Engine) take(ws *unix.WaitStatus, flags int) (tid int, err error) {
	if tr.h.Dispatching == nil {
		return unix.Wait4(-1, ws, flags, nil)
	}
	for {
		var child childInfo
		if err := child.peek(flags); err != nil || child.pid == 0 {
			return 0, err
		}
		var info Siginfo
		if child.code == cldTrapped && child.status == int32(syscall.SIGSYS) && info.get(int(child.pid)) == nil &&
			info.Code == SysUserDispatch && tr.phase == running {
			tr.h.Dispatching(int(child.pid), &info)
		}
		tid, err := unix.Wait4(int(child.pid), ws, unix.WALL|unix.WNOTHREAD|unix.WNOHANG, nil)
		if err != nil || tid != 0 {
			return tid, err
		}
		// It has been killed meanwhile, and has not ended yet.
		if flags&unix.WNOHANG != 0 {
			return 0, nil
		}
	}
}

func (tr *Engine) add(tid, pid int) *Tracee {
	t := &Tracee{TID: tid, PID: pid, tr: tr}
	tr.tracees[tid] = t
	return t
}

func (tr *Engine) clock() uint64 {
	if tr.given.Clock == nil {
		return 0
	}
	return tr.given.Clock()
}

func (tr *Engine) handle(tid int, ws unix.WaitStatus, seen uint64) {
	t := tr.tracees[tid]
	if t != nil {
		t.Seen = seen
	}
	switch {
	case ws.Stopped() && t != nil:
		tr.stopped(t, ws)
	case ws.Stopped():
		tr.early[tid] = earlyStop{ws, time.Now(), seen}
		time.AfterFunc(adoptAfter, func() { tr.Do(tr.adoptStale) })
	case t != nil:
		tr.ended(t, ws)
	default:
		delete(tr.early, tid)
		tr.dead[tid] = ws // before its fork event
	}
}

// bear tells of a thread that has its first stop.
func (tr *Engine) bear(t *Tracee) {
	if !t.born {
		t.born = true
		if tr.h.Birth != nil && t.TID != tr.root {
			tr.h.Birth(t)
		}
	}
}

func (tr *Engine) stopped(t *Tracee, ws unix.WaitStatus) {
	t.stopped, t.sig, t.at = true, 0, stopOf(ws)
	tr.bear(t)
	sig := ws.StopSignal()
	switch ev := event(ws); {
	case ev == unix.PTRACE_EVENT_SECCOMP:
		tr.filtered(t)
	case ev == unix.PTRACE_EVENT_FORK, ev == unix.PTRACE_EVENT_VFORK, ev == unix.PTRACE_EVENT_CLONE:
		tr.forked(t, ev)
	case ev == unix.PTRACE_EVENT_EXEC:
		t = tr.execed(t)
	case ev == unix.PTRACE_EVENT_EXIT:
		tr.dying(t)
	case ev == unix.PTRACE_EVENT_STOP && sig != syscall.SIGTRAP:
		// Group stop: the thread stays stopped until SIGCONT, which we are told of
		// by another of these events.
		if tr.parting { // it is let go as it is
			t.held = true
			return
		}
		t.stopped = false
		_ = ptrace(unix.PTRACE_LISTEN, t.TID, 0, 0)
		if t.TID == tr.root {
			tr.jobs.rootStopped(true)
		}
		return
	case ev == unix.PTRACE_EVENT_STOP:
		if t.interrupted {
			t.interrupted = false
			_ = repeat(t, 0)
		}
		if t.TID == tr.root {
			tr.jobs.rootStopped(false)
		}
	case ev != 0:
	case sig == syscallStop:
		tr.syscallStop(t)
	default:
		if tr.signalled(t, sig) == Hold {
			t.held = true
			if sig == syscall.SIGSTOP {
				park(t)
			}
		}
	}
	if t != nil && !t.held {
		tr.resume(t)
	}
}

// park moves a thread that is about to get a SIGSTOP on to another stop, of which
// nothing is left should we die: the kernel delivers what it has told us of.
func park(t *Tracee) {
	if ptrace(unix.PTRACE_INTERRUPT, t.TID, 0, 0) == nil {
		_ = ptrace(unix.PTRACE_CONT, t.TID, 0, 0) // and its next stop finds it held
	}
}

// resume lets a stopped thread go on, with the signal that is due.
func (tr *Engine) resume(t *Tracee) {
	if !t.stopped {
		return // killed: it has gone on
	}
	if tr.gathering {
		t.held = true
		return
	}
	request := unix.PTRACE_CONT
	if t.wantExit || t.wantCall || t.EveryCall || tr.cmd.EveryCall || t.PID == tr.root && tr.phase != running {
		request = unix.PTRACE_SYSCALL
	}
	sig := t.sig
	t.stopped, t.sig = false, 0
	_ = ptrace(request, t.TID, 0, uintptr(sig)) // ESRCH: killed; wait4 reports it
}

// filtered handles a stop of the seccomp filter.
func (tr *Engine) filtered(t *Tracee) {
	var i syscallInfo
	if tr.look(t, &i) && i.op == unix.PTRACE_SYSCALL_INFO_SECCOMP {
		tr.enter(t, &i)
	}
}

// look asks for the call at whose begin or end a thread has stopped. It returns false if the thread was killed
// since, which alone takes it out of such a stop: it goes on, or has stopped once more, because it ends. The kernel
// forgets that stop when the thread is resumed, so it is handled here.
func (tr *Engine) look(t *Tracee, i *syscallInfo) bool {
	switch err := i.get(t.TID); {
	case err == unix.ESRCH:
		t.stopped = false
	case err == nil && i.op == unix.PTRACE_SYSCALL_INFO_NONE:
		tr.dying(t)
	default:
		return err == nil
	}
	return false
}

// enter handles the begin of a call.
func (tr *Engine) enter(t *Tracee, i *syscallInfo) {
	if tr.phase == inStub || tr.phase == stubDead {
		return
	}
	c := Syscall{NR: i.nr, Args: i.args, Arch: i.arch, Compat: i.arch != nativeArch()}
	wanted := tr.h.Enter != nil && tr.h.Enter(t, &c)
	t.follow(&c)
	t.wantExit = wanted || t.hidden.flags != 0
	t.wantLeave = wanted
}

// syscallStop handles the end of a call, the steps of the stub, and, without a filter,
// the begin of calls.
func (tr *Engine) syscallStop(t *Tracee) {
	var i syscallInfo
	if !tr.look(t, &i) {
		return
	}
	switch {
	case i.op == unix.PTRACE_SYSCALL_INFO_ENTRY:
		t.nr, t.inCall, t.at = i.nr, true, AtEntry
		if tr.phase == inStub && i.nr == unix.SYS_EXECVE {
			tr.phase = inExec
			tr.gate()
		}
		if t.wantCall || t.EveryCall || tr.cmd.EveryCall || tr.phase == inExec && tr.h.Dispatched != nil {
			t.wantCall = false
			tr.enter(t, &i)
		}
		if tr.parting {
			again(t)
		}
	case i.op == unix.PTRACE_SYSCALL_INFO_EXIT:
		t.at = AtExit
		wanted := t.wantLeave
		t.wantExit, t.wantLeave, t.inCall = false, false, false
		t.followed()
		ret := int64(i.nr)
		// A signal that the program ignores woke the thread, perhaps for another one to take it.
		if ret == -int64(unix.EINTR) && repeat(t, 0) {
			ret = -restartSys
		}
		if wanted && tr.h.Leave != nil {
			tr.h.Leave(t, ret)
		}
		if tr.phase == inExec && t.TID == tr.root && int64(i.nr) < 0 {
			tr.phase = stubDead
		}
	}
}

// gate opens the way to the stub's execve.
func (tr *Engine) gate() {
	if tr.cmd.Gate == nil {
		return
	}
	if err := tr.cmd.Gate(tr.root); err != nil {
		tr.gateErr = fmt.Errorf("register process %d: %w", tr.root, err)
		tr.h = &Handler{}
		_ = unix.Kill(tr.root, unix.SIGKILL)
	}
}

func (tr *Engine) forked(parent *Tracee, ev int) {
	tid, err := eventMessage(parent.TID)
	if err != nil || tr.tracees[tid] != nil {
		return // killed; or adopted already
	}
	tr.addChild(parent, tid, ev == unix.PTRACE_EVENT_CLONE)
}

// addChild starts to follow a new thread, whatever of it was seen already.
func (tr *Engine) addChild(parent *Tracee, tid int, mayBeThread bool) {
	pid := tid
	if mayBeThread {
		pid = threadGroup(tid)
	}
	t := tr.add(tid, pid)
	if tr.h.Fork != nil {
		tr.h.Fork(parent, t)
	}
	if e, ok := tr.early[tid]; ok {
		delete(tr.early, tid)
		t.Seen = e.seen
		tr.stopped(t, e.status)
	}
	if ws, ok := tr.dead[tid]; ok {
		delete(tr.dead, tid)
		tr.ended(t, ws)
	}
}

// adoptStale takes up stopped threads whose parent did not report them: it was
// killed inside fork.
func (tr *Engine) adoptStale() {
	for tid, e := range tr.early {
		if time.Since(e.since) < adoptAfter {
			continue
		}
		tr.addChild(tr.guessParent(tid), tid, true)
	}
}

func (tr *Engine) guessParent(tid int) *Tracee {
	pid := threadGroup(tid)
	if pid == tid {
		pid = parentProcess(tid)
	}
	if t := tr.tracees[pid]; t != nil {
		return t
	}
	for _, t := range tr.tracees {
		if t.PID == pid {
			return t
		}
	}
	return nil
}

// execed handles a successful execve. It returns the thread that did it, which
// by now has its group's number.
func (tr *Engine) execed(leader *Tracee) *Tracee {
	if leader.TID == tr.root && tr.phase == inExec {
		tr.phase = running
	}
	t, replaced := leader, (*Tracee)(nil)
	old, err := eventMessage(leader.TID)
	if err == nil && old != leader.TID && tr.tracees[old] != nil {
		t, replaced = tr.tracees[old], leader
		delete(tr.tracees, old)
		replaced.gone = true
		t.TID, t.Seen = leader.TID, leader.Seen
		t.stopped = true
		tr.tracees[t.TID] = t
	} else {
		old = t.TID
	}
	if tr.h.Exec != nil {
		tr.h.Exec(t, old, replaced)
	}
	return t
}

func (tr *Engine) signalled(t *Tracee, sig syscall.Signal) Verdict {
	t.sig = sig
	var info Siginfo
	_ = info.get(t.TID)
	if t.PID == tr.root {
		tr.jobs.delivered(sig, int(info.PID))
		if tr.phase != running {
			return Deliver
		}
	}
	_ = repeat(t, sig)
	if tr.h.Signal == nil {
		return Deliver
	}
	if sig == syscall.SIGSYS && info.Code == SysUserDispatch && tr.h.Dispatched != nil {
		t.sig = 0
		tr.h.Dispatched(t, &info)
		return Deliver // what Dispatched gave it
	}
	v := tr.h.Signal(t, sig, &info)
	if v != Deliver {
		t.sig = 0
	}
	return v
}

// dying handles the stop of a thread that has begun to end. If it was killed in a call, by a signal or because another
// thread ended the process or executed a program, its call did not stop at its end, and may have come to it.
func (tr *Engine) dying(t *Tracee) {
	t.held = false // whatever it was to wait for
	if t.wantLeave {
		if ret, returned := t.Result(); returned {
			t.wantExit, t.wantLeave, t.inCall = false, false, false
			t.followed()
			if tr.h.Leave != nil {
				tr.h.Leave(t, ret)
			}
		}
	}
	if tr.h.Dying != nil {
		tr.h.Dying(t)
	}
}

func (tr *Engine) ended(t *Tracee, ws unix.WaitStatus) {
	t.gone, t.stopped, t.held = true, false, false
	delete(tr.tracees, t.TID)
	if t.TID == tr.root {
		tr.status.Ended = true
		if ws.Signaled() {
			tr.status.Signal = ws.Signal()
		} else {
			tr.status.Exit = ws.ExitStatus()
		}
		tr.jobs.setRoot(0)
		if tr.phase != running && tr.phase != inExec {
			return
		}
	}
	if tr.h.Exit != nil {
		tr.h.Exit(t, ws)
	}
}

// leaveWhen leaves when ctx is cancelled, unless stop is called before.
func (tr *Engine) leaveWhen(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		if tr.cmd.Leaving != nil {
			tr.cmd.Leaving()
		}
		tr.Do(tr.leave)
	})
}

// leave stops the recording: without a filter by ending the loop, with one by no
// longer looking, because the filter needs a tracer to its end.
func (tr *Engine) leave() {
	if len(tr.cmd.Filter) > 0 {
		tr.h = &Handler{}
		for _, t := range tr.tracees {
			t.Resume()
		}
		return
	}
	if tr.cmd.Attach != nil && tr.cmd.EveryCall {
		tr.part()
	}
	tr.leaving, tr.status.Detached = true, true
}
