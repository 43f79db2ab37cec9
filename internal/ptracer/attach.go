// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// followOptions make the kernel hand over what followed threads make, and tell of it.
const followOptions = unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACECLONE |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESYSGOOD | stopAtEnd

// idlePause is how long the loop rests while no thread is followed, if nobody calls Do.
const idlePause = 100 * time.Millisecond

// attach follows threads that run already.
func (tr *Engine) attach(ctx context.Context) (Status, error) {
	tr.phase = running
	if err := tr.cmd.Attach(); err != nil {
		return tr.status, err // what was seized is let go with the thread
	}
	defer tr.leaveWhen(ctx)()
	return tr.status, tr.loop()
}

// linger reports whether the loop goes on without threads; it rests a while first.
func (tr *Engine) linger() bool {
	if tr.cmd.Attach == nil || tr.cmd.Idle != nil && tr.cmd.Idle() {
		return false
	}
	rest := time.NewTimer(idlePause)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-tr.called:
	}
	return true
}

// Seize follows a running thread and all that it will make, without stopping it. It
// is for Command.Attach and Do. Threads that the kernel handed over already, because
// their maker is followed, are no error.
func (tr *Engine) Seize(pid, tid int) error {
	if tr.tracees[tid] != nil {
		return nil
	}
	err := ptrace(unix.PTRACE_SEIZE, tid, 0, followOptions)
	if err == unix.EPERM && tracerOf(tid) == tr.tid {
		return nil // its maker's stop tells of it
	}
	if err != nil {
		return fmt.Errorf("follow thread %d: %w", tid, err)
	}
	tr.add(tid, pid)
	return nil
}
