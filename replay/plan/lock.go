// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/order"
)

// Locks of fcntl belong to a process and a file, and a replay is one process. Each
// process of the recording that locks a file therefore gets an open file of its own for
// that, and its locks are locks of that open file (F_OFD_SETLK, fcntl(2)): these
// conflict with others' as the process's did. They go when the process loses any
// descriptor of the file, however that is (eventsource.State.Closed).

// LockOwner is a process's locks on a file.
type LockOwner struct {
	FD    int // -1 until the first lock
	users []order.Ref
}

type lockKey struct {
	pid  uint32
	file effect.Inode
}

// Commands of fcntl about locks (asm-generic/fcntl.h).
const (
	fGetLk, fSetLk, fSetLkw = 5, 6, 7
	// The first of the commands for locks of open files.
	fOFDGetLk, fOFDSetLk, fOFDSetLkw = 36, 37, 38
)

// AsksForLock reports whether a command of fcntl only queries a lock (F_GETLK).
func AsksForLock(cmd uint64) bool { return cmd == fGetLk || cmd == fOFDGetLk }

// isLock reports whether an fcntl is about locks on ranges.
func isLock(ev *event.Event) bool {
	switch ev.Args[1] {
	case fGetLk, fSetLk, fSetLkw, fOFDGetLk, fOFDSetLk, fOFDSetLkw:
		return ev.Op == event.OpFcntl
	}
	return false
}

// planLock plans a lock of fcntl.
func (p *Planner) planLock(t *Task) {
	f := t.Event.FileArg(0)
	if t.Files.FDs[0] == nil || t.Event.BufArg(2) == nil || f == nil || !f.Known {
		return
	}
	t.Action = LockRange
	if t.Event.Args[1] >= fOFDGetLk {
		return
	}
	k := lockKey{t.Event.PID, effect.InodeOf(f)}
	if p.owners[k] == nil {
		p.owners[k] = &LockOwner{FD: -1}
	}
	t.Locks.Owner = p.owners[k]
}

// findReleasedLocks finds which locks an event ends.
func (p *Planner) findReleasedLocks(t *Task) {
	if len(p.owners) == 0 {
		return
	}
	for _, file := range t.Closed {
		k := lockKey{t.Event.PID, file}
		if o := p.owners[k]; o != nil {
			t.Locks.Ends = append(t.Locks.Ends, o)
			delete(p.owners, k)
		}
	}
}
