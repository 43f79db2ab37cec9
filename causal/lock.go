// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
)

// locks follows who holds which lock on a file (flock(2), fcntl(2)). A lock that is
// taken waits for those that were in its way and were given up.
type locks struct {
	files map[inode]*lockedFile
	opens map[openFile]inode // files that were locked, by their open files
	pids  map[openFile]bool  // processes that took a lock
	alive event.Threads
	edge  func(to, from int, why Reason)
}

func newLocks(edge func(to, from int, why Reason)) *locks {
	return &locks{files: map[inode]*lockedFile{}, opens: map[openFile]inode{}, pids: map[openFile]bool{}, edge: edge}
}

type inode struct {
	host     uint32
	dev, ino uint64
}

type lockedFile struct {
	held []lock
	gone []lock // given up, the last maxGone
}

const maxGone = 64

type lock struct {
	owner     owner
	from, to  int64 // bytes
	exclusive bool
	event     int   // that took it or, later, gave it up
	fd        int32 // descriptor that it was taken by
	cloexec   bool  // which an execve closes
}

// owner is an open file or, where open is 0, a process.
type owner struct {
	open event.OpenID
	pid  uint32 // that took the lock
}

// has reports whether a lock is the owner's.
func (o owner) has(h *lock) bool { return o.same(h.owner) }

func (o owner) same(p owner) bool { return o.open == p.open && (o.open != 0 || o.pid == p.pid) }

const (
	fSETLK, fSETLKW       = 6, 7
	fOFDSETLK, fOFDSETLKW = 37, 38
	wholeFile             = 1 << 62
)

// isLock reports whether an event is a lock by fcntl.
func isLock(ev *event.Event) bool {
	if ev.Op != event.OpFcntl {
		return false
	}
	switch ev.Args[1] {
	case fSETLK, fSETLKW, fOFDSETLK, fOFDSETLKW:
		return true
	}
	return false
}

// see takes the next event.
func (l *locks) see(i int, ev *event.Event) {
	l.followProcess(i, ev)
	if ev.Kind != event.Call || !ev.OK() {
		return
	}
	switch {
	case ev.Op == event.OpClose:
		l.closed(i, ev)
	case ev.Op == event.OpFlock:
		l.flock(i, ev)
	case isLock(ev):
		l.fcntl(i, ev)
	}
}

// followProcess ends the locks that the event's process loses, without naming the files.
func (l *locks) followProcess(i int, ev *event.Event) {
	process := openFile{ev.Host, event.OpenID(ev.PID)}
	ended := l.alive.Follow(ev)
	switch {
	case !l.pids[process]:
	case ended:
		delete(l.pids, process)
		l.lose(i, ev, func(*lock) bool { return true })
	case ev.Kind == event.Call && ev.OK():
		l.replaced(i, ev)
	}
}

// locked returns the file that a call locks or unlocks, and its descriptor; nil if it is
// not known.
func (l *locks) locked(ev *event.Event) (*lockedFile, *event.File) {
	f := ev.FileArg(0)
	if f == nil || f.Open == 0 {
		return nil, nil
	}
	k := inode{ev.Host, f.Dev, f.Ino}
	l.opens[openFile{ev.Host, f.Open}], l.pids[openFile{ev.Host, event.OpenID(ev.PID)}] = k, true
	return l.file(k), f
}

// closed ends the locks of a process on a file, and those of an open file if no other
// descriptor is left.
func (l *locks) closed(i int, ev *event.Event) {
	f := ev.FileArg(0)
	if f == nil || f.Open == 0 {
		return
	}
	if k, ok := l.opens[openFile{ev.Host, f.Open}]; ok {
		l.files[k].giveUp(i, func(h *lock) bool {
			return h.owner.pid == ev.PID && (h.owner.open == 0 || h.owner.open == f.Open)
		}, 0, wholeFile)
	}
}

// flock takes a call of flock(2).
func (l *locks) flock(i int, ev *event.Event) {
	const exclusive, unlock = 2, 8
	file, f := l.locked(ev)
	if file == nil {
		return
	}
	mine := owner{f.Open, ev.PID}
	file.giveUp(i, mine.has, 0, wholeFile)
	if ev.Args[1]&unlock == 0 {
		l.take(file, lock{mine, 0, wholeFile, ev.Args[1]&exclusive != 0, i, f.FD, f.Flags&event.OpenCloexec != 0})
	}
}

// fcntl takes a lock by fcntl(2).
func (l *locks) fcntl(i int, ev *event.Event) {
	const write, unlock = 1, 2
	file, f := l.locked(ev)
	m := ev.BufArg(2)
	if file == nil || m == nil || len(m.Inline) < 24 {
		return
	}
	kind, from, to := lockRange(m.Inline)
	mine := owner{pid: ev.PID}
	if ev.Args[1] >= fOFDSETLK {
		mine.open = f.Open
	}
	file.giveUp(i, mine.has, from, to)
	if kind != unlock {
		l.take(file, lock{mine, from, to, kind == write, i, f.FD, f.Flags&event.OpenCloexec != 0})
	}
}

// lockRange reads a struct flock (fcntl(2)).
func lockRange(b []byte) (kind uint16, from, to int64) {
	le := binary.LittleEndian
	kind, from, to = le.Uint16(b), int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:]))
	if to += from; to <= from {
		to = wholeFile
	}
	if whence := le.Uint16(b[2:]); whence != 0 {
		from, to = 0, wholeFile // from where, is not known
	}
	return kind, from, to
}

// replaced ends the locks of a process that it took by descriptors which a call closes
// without naming the files. An execve leaves it all others.
func (l *locks) replaced(i int, ev *event.Event) {
	const cloexecFlag = 4 // of close_range(2)
	switch {
	case ev.Effect() == event.EffectExecute:
		l.lose(i, ev, func(h *lock) bool { return h.cloexec })
	case ev.Effect() == event.EffectDupTo && ev.Args[0] != ev.Args[1]:
		l.lose(i, ev, func(h *lock) bool { return h.fd == int32(ev.Args[1]) })
	case ev.Effect() == event.EffectCloseRange && ev.Args[2]&cloexecFlag == 0:
		l.lose(i, ev, func(h *lock) bool {
			return uint32(h.fd) >= uint32(ev.Args[0]) &&
				uint32(h.fd) <= uint32(ev.Args[1])
		})
	}
}

// lose ends locks of an event's process.
func (l *locks) lose(i int, ev *event.Event, which func(*lock) bool) {
	for k, f := range l.files {
		if k.host == ev.Host {
			f.giveUp(i, func(h *lock) bool { return h.owner.pid == ev.PID && which(h) }, 0, wholeFile)
		}
	}
}

func (l *locks) file(k inode) *lockedFile {
	f := l.files[k]
	if f == nil {
		f = &lockedFile{}
		l.files[k] = f
	}
	return f
}

func (l *locks) take(f *lockedFile, n lock) {
	for i := range f.gone {
		g := &f.gone[i]
		if !g.owner.same(n.owner) && (g.exclusive || n.exclusive) && g.from < n.to && n.from < g.to {
			l.edge(n.event, g.event, Lock)
		}
	}
	f.held = append(f.held, n)
}

// giveUp ends some locks on a range.
func (f *lockedFile) giveUp(i int, which func(*lock) bool, from, to int64) {
	kept := f.held[:0:0]
	for _, h := range f.held {
		if !which(&h) || h.from >= to || from >= h.to {
			kept = append(kept, h)
			continue
		}
		if h.from < from {
			before := h
			before.to = from
			kept = append(kept, before)
		}
		if to < h.to {
			after := h
			after.from = to
			kept = append(kept, after)
		}
		h.event = i
		if f.gone = append(f.gone, h); len(f.gone) > maxGone {
			f.gone = f.gone[1:]
		}
	}
	f.held = kept
}
