// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"cmp"
	"iter"
	"slices"

	"github.com/iotape/iotape/event"
)

// State returns the events that a trace has to begin with which goes on from the
// present state of a model: applied to a new one they give the same state, but for
// messages on their way, the files of io_urings and file handles.
//
// First comes what threads share with each other, as if one had made the other; then,
// thread by thread, working directory and mask, descriptors, and what is mapped without
// a descriptor. The events are reused by the iteration, have no times and say of who
// made them only PID and TID.
func (m *Model) State(k *Facts) iter.Seq[*event.Event] {
	return func(yield func(*event.Event) bool) {
		s := state{facts: k, yield: yield, fs: map[*FS]bool{}, tables: map[*Table]bool{}, spaces: map[*Space]bool{},
			mounts: newMountState(m.host), told: map[*Namespace]bool{}}
		threads := m.Threads()
		if !s.relations(threads) {
			return
		}
		for _, t := range threads {
			if !s.thread(t) {
				return
			}
		}
	}
}

// state is one iteration. Its methods return false if it is to end.
type state struct {
	facts  *Facts
	yield  func(*event.Event) bool
	ev     event.Event
	fs     map[*FS]bool // told
	tables map[*Table]bool
	spaces map[*Space]bool
	mounts *mountState
	told   map[*Namespace]bool
}

// put begins an event of a thread.
func (s *state) put(kind event.EventKind, t *Thread) *event.Event {
	s.ev = event.Event{Kind: kind, PID: t.PID, TID: t.TID, Offset: -1, Count: -1, Files: s.ev.Files[:0],
		Paths: s.ev.Paths[:0], Bufs: s.ev.Bufs[:0]}
	return &s.ev
}

// relations tells which threads share what.
func (s *state) relations(threads []*Thread) bool {
	for i, t := range threads {
		best, share := -1, uint64(0)
		for k, o := range threads[:i] {
			common := uint64(0)
			if o.FS == t.FS {
				common |= event.ShareFS
			}
			if o.Table == t.Table {
				common |= event.ShareFiles
			}
			if o.PID == t.PID {
				common |= event.ShareVM | event.ShareThread
			}
			if common > share {
				best, share = k, common
			}
		}
		if best < 0 {
			continue
		}
		ev := s.put(event.Forked, threads[best])
		ev.SetFork(event.Fork{PID: t.PID, TID: t.TID, Share: share})
		if !s.yield(ev) {
			return false
		}
	}
	return true
}

func (s *state) thread(t *Thread) bool {
	if !s.fs[t.FS] {
		s.fs[t.FS] = true
		ev := s.put(event.Started, t)
		ev.SetUmask(t.FS.Umask)
		dir, real := t.FS.Cwd, t.FS.realCwd
		if t.FS.gone {
			dir, real = "", ""
		}
		if dir != "" || t.FS.Root != "" {
			ev.Paths = append(ev.Paths, event.Path{Raw: dir, Abs: dir, Real: real})
		}
		if dir := t.FS.Root; dir != "" {
			ev.Paths = append(ev.Paths, event.Path{Raw: dir, Abs: dir, Real: t.FS.realRoot})
		}
		if mounts := s.mounts.of(t.FS, s.told); mounts != nil {
			ev.SetMounts(mounts)
		}
		if !s.yield(ev) {
			return false
		}
	}
	if !s.tables[t.Table] {
		s.tables[t.Table] = true
		for _, fd := range t.Table.Numbers() {
			d := t.Table.Lookup(fd)
			ev := s.inherited(t, d.Open, fd)
			if f := &ev.Files[0]; d.CloExec {
				f.Flags |= event.OpenCloexec
			} else {
				f.Flags &^= event.OpenCloexec
			}
			if !s.yield(ev) {
				return false
			}
		}
	}
	if !s.spaces[t.Space] {
		s.spaces[t.Space] = true
		mappings := slices.Clone(t.Space.mappings)
		slices.SortFunc(mappings, func(a, b mapping) int { return cmp.Compare(a.from, b.from) })
		for _, p := range mappings {
			ev := s.inherited(t, p.file, event.MappedFD)
			ev.SetMapping(p.from, p.to)
			if !s.yield(ev) {
				return false
			}
		}
	}
	return true
}

func (s *state) inherited(t *Thread, o *OpenFile, fd int32) *event.Event {
	ev := s.put(event.Inherited, t)
	ev.SetOwnsFile(!o.Given)
	ev.SetOpenedOver(uint32(s.mounts.number(o.Now.over)))
	f := s.facts.file(o)
	f.Arg, f.FD = 0, fd
	ev.Files = append(ev.Files, f)
	return ev
}

// MayChange reports whether there are events of an operation that Changes.
func MayChange(op event.Op) bool { return effects[op.Like()] != nil || requestEffects[op] != nil }

// Changes reports whether an event can change the state of a Model: threads, working
// directories and masks, what descriptors stand for, and what is mapped.
func Changes(ev *event.Event) bool {
	switch ev.Kind {
	case event.Forked, event.Exited, event.Started, event.Inherited:
		return true
	case event.Call:
	default:
		return false
	}
	switch ev.Op.Like() {
	case event.OpSendmsg, event.OpSendmmsg, event.OpRecvmsg, event.OpRecvmmsg:
		for i := range ev.Files {
			if ev.Files[i].Arg == event.MemoryArg {
				return ev.OK()
			}
		}
		return false
	case event.OpFcntl:
		switch ev.Args[1] {
		case fDupFD, fDupFDCloexec, fSetFD, fSetFL:
			return ev.OK()
		}
		return false
	case event.OpIoctl:
		return ev.OK() && (ev.Args[1] == fioclex || ev.Args[1] == fionclex)
	case event.OpClose:
		return ev.Errno != ebadf && ev.Flags&event.Interrupted == 0
	}
	return ev.OK() && (effects[ev.Op.Like()] != nil || requestEffects[ev.Op] != nil)
}
