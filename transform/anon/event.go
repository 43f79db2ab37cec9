// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"strings"

	"github.com/iotape/iotape/event"
)

// event maps all of an event but its memory.
func (m *mapper) event(ev *event.Event) {
	m.result(ev)
	m.arguments(ev)
	for _, p := range [...]*uint32{&ev.PID, &ev.TID, &ev.PPID, &ev.PGID, &ev.SID, &ev.NSPID, &ev.NSTID, &ev.Child} {
		*p = m.id(PID, *p)
	}
	ev.UID, ev.GID = m.id(UID, ev.UID), m.id(GID, ev.GID)
	ev.Comm = m.string(Comm, ev.Comm)
	ev.Enter, ev.Exit = m.boot(ev.Enter), m.boot(ev.Exit)
	ev.Stack = m.stack(ev.Stack)
	for i := range ev.Files {
		f := &ev.Files[i]
		f.Ino, f.UID, f.GID = m.number(Inode, f.Ino), m.id(UID, f.UID), m.id(GID, f.GID)
		f.Path, f.Real = m.path(f.Path), m.path(f.Real)
	}
	for i := range ev.Paths {
		p := &ev.Paths[i]
		p.Raw, p.Abs, p.Real = m.path(p.Raw), m.path(p.Abs), m.path(p.Real)
	}
}

// process maps the number of a process, 0 of none.
func (m *mapper) process(pid uint32) uint32 {
	if pid == 0 {
		return 0
	}
	return m.id(PID, pid)
}

// result maps what a call returned, or what an event of another kind says there.
func (m *mapper) result(ev *event.Event) {
	switch ev.Kind {
	case event.Forked:
		fork := ev.Fork() // its thread is mapped as Child
		fork.PID = m.process(fork.PID)
		ev.SetFork(fork)
		return
	case event.Woken:
		by := ev.Wakeup()
		by.PID = m.process(by.PID)
		ev.SetWakeup(by)
		return
	case event.Call:
	default:
		return
	}
	if !ev.OK() || ev.Ret < 0 && ev.Op != event.OpFcntl {
		return
	}
	switch r := ev.Spec().Returns(&ev.Args); {
	case r.Kind == event.KindPID, ev.Op == event.OpFcntl && uint32(ev.Args[1]) == fGetOwn:
		ev.Ret = int64(m.signed(PID, int32(ev.Ret)))
	case r.Kind == event.KindID:
		ev.Ret = int64(m.id(groupOrUser(ev.Spec().Name), uint32(ev.Ret)))
	case ev.Op == event.OpTime:
		ev.Ret = m.wall(ev.Ret)
	case ev.Op == event.OpTimes:
		const ticks = 100 // a second (USER_HZ)
		ev.Ret += ticks * (m.bootShift / second)
	}
}

const (
	fSetOwn = 8
	fGetOwn = 9
)

// groupOrUser says what an id is by the name of its argument or call.
func groupOrUser(name string) Field {
	if strings.Contains(name, "gid") || name == "group" {
		return GID
	}
	return UID
}

// arguments maps those whose values are ids.
func (m *mapper) arguments(ev *event.Event) {
	if ev.Kind != event.Call {
		return
	}
	spec := ev.Spec()
	put := func(i int, v uint32) { ev.Args[i] = ev.Args[i]&^(1<<32-1) | uint64(v) }
	for i := range spec.Args {
		v := uint32(ev.Args[i])
		switch a := spec.Argument(i, &ev.Args); {
		case a.Kind == event.KindPID && !m.isDescriptor(ev, i):
			put(i, uint32(m.signed(PID, int32(v))))
		case a.Kind == event.KindID && v != 1<<32-1:
			put(i, m.id(groupOrUser(a.Name), v))
		}
	}
	switch ev.Op.Like() {
	case event.OpFcntl:
		if uint32(ev.Args[1]) == fSetOwn {
			put(2, uint32(m.signed(PID, int32(ev.Args[2]))))
		}
	case event.OpGetpriority, event.OpSetpriority:
		m.who(ev, uint32(ev.Args[0])) // PRIO_PROCESS, PRIO_PGRP, PRIO_USER
	case event.OpIoprioGet, event.OpIoprioSet:
		m.who(ev, uint32(ev.Args[0])-1) // IOPRIO_WHO_PROCESS, …
	}
}

// isDescriptor reports whether waitid's id is one (P_PIDFD).
func (m *mapper) isDescriptor(ev *event.Event, i int) bool {
	const pPIDFD = 3
	return ev.Op == event.OpWaitid && i == 1 && uint32(ev.Args[0]) == pPIDFD
}

// who maps argument 1 where argument 0 says of what kind it is.
func (m *mapper) who(ev *event.Event, kind uint32) {
	f := PID
	if kind == 2 {
		f = UID
	} else if kind > 2 {
		return
	}
	if a := ev.Spec().Args; len(a) > 1 && (a[1].Kind == event.KindPID || a[1].Kind == event.KindID) {
		return // done
	}
	ev.Args[1] = ev.Args[1]&^(1<<32-1) | uint64(m.id(f, uint32(ev.Args[1])))
}
