// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"math"
	"slices"

	"github.com/iotape/iotape/event"
)

// maxStateMounts bounds the mounts of a namespace that a state tells, the last ones: an event has so many names.
const maxStateMounts = 400

// mountState numbers the mounts of a state, and the namespaces that have them.
type mountState struct {
	spaces map[*Namespace]uint32
	binds  map[*bind]uint32
}

// hostSpace is the number of the namespace of the threads that made none.
const hostSpace = 1

func newMountState(host *Namespace) *mountState {
	s := &mountState{map[*Namespace]uint32{}, map[*bind]uint32{}}
	if host != nil {
		s.spaces[host] = hostSpace
	}
	return s
}

// number returns the number of a bind mount, 0 of none.
func (s *mountState) number(b *bind) uint32 {
	if b == nil {
		return 0
	}
	if s.binds[b] == 0 {
		s.binds[b] = uint32(len(s.binds)) + 1
	}
	return s.binds[b]
}

// of returns what is told of the mounts of a thread's namespace, nil if nothing is known of it. told has the
// namespaces whose mounts were told already.
func (s *mountState) of(fs *FS, told map[*Namespace]bool) *event.MountState {
	ns := fs.Mounts
	if ns == nil {
		return nil
	}
	if s.spaces[ns] == 0 {
		s.spaces[ns] = hostSpace + uint32(len(s.spaces)) + 1
	}
	st := &event.MountState{
		Namespace: s.spaces[ns], Cwd: s.number(fs.overCwd), Root: s.number(fs.overRoot), Top: s.number(ns.root.over),
		Begins: event.Path{Abs: ns.root.Given, Real: ns.root.other()}, Entered: uint32(fs.mounts),
	}
	if told[ns] {
		return st
	}
	told[ns] = true
	for _, o := range ns.own[max(len(ns.own)-maxStateMounts/2, 0):] {
		st.Mounts = append(st.Mounts, event.MountPoint{Number: uint32(o.Number), Own: true, Unsaid: o.Unsaid,
			Type: o.Type, Given: o.Work, At: o.At, To: o.Upper})
	}
	for _, b := range ns.binds[max(len(ns.binds)-maxStateMounts/2, 0):] {
		st.Mounts = append(st.Mounts, event.MountPoint{Number: s.number(b), Over: s.number(b.at.over),
			Given: b.at.Given, At: b.at.Real, To: b.to})
	}
	return st
}

// restored is what the Started events of a state said of mounts.
type restored struct {
	spaces map[uint32]*Namespace
	binds  map[uint32]*bind
}

// bind returns the mount with a number, nil for 0. What is told later of it completes it.
func (r *restored) bind(number uint32) *bind {
	if number == 0 {
		return nil
	}
	if r.binds == nil {
		r.binds = map[uint32]*bind{}
	}
	b := r.binds[number]
	if b == nil {
		b = &bind{}
		r.binds[number] = b
	}
	return b
}

// space returns the mount namespace with a number.
func (m *Model) space(number uint32) *Namespace {
	if m.restored.spaces == nil {
		m.restored.spaces = map[uint32]*Namespace{}
	}
	ns := m.restored.spaces[number]
	if ns == nil {
		ns = &Namespace{}
		m.restored.spaces[number] = ns
	}
	if number == hostSpace {
		m.host = ns
	}
	return ns
}

// started takes what a Started event says of a thread.
func (m *Model) started(t *Thread, ev *event.Event) {
	dir := func(i int) Name {
		if i >= len(ev.Paths) {
			return Name{}
		}
		return nameOf(ev.Paths[i].Abs, ev.Paths[i].Real)
	}
	cwd, root := dir(0), dir(1)
	s := ev.Mounts()
	if s == nil { // the kernel gave the names
		cwd, root = m.fromKernel(t, cwd), m.fromKernel(t, root)
	} else {
		cwd.over, root.over = m.restored.bind(s.Cwd), m.restored.bind(s.Root)
		t.FS.Mounts = m.space(s.Namespace)
		m.remount(t.FS.Mounts, s)
		cwd.fs, root.fs = t.FS.Mounts.topmost(cwd.Real, int(s.Entered)+1), t.FS.Mounts.topmost(root.Real, math.MaxInt)
	}
	if len(ev.Paths) > 0 {
		m.setCwd(t, cwd)
	}
	if len(ev.Paths) > 1 {
		t.FS.setRoot(root)
	}
	if s != nil {
		t.FS.mounts = int(s.Entered)
	}
	t.FS.Umask = ev.Umask()
}

// remount gives a namespace the mounts that it had.
func (m *Model) remount(ns *Namespace, s *event.MountState) {
	if ns.root = nameOf(s.Begins.Abs, s.Begins.Real); ns.root.isFile() {
		ns.root.over = m.restored.bind(s.Top)
	}
	for i := range s.Mounts {
		p := &s.Mounts[i]
		if len(ns.own)+len(ns.binds) >= maxMounts {
			return
		}
		if p.Own {
			mt := Mount{At: p.At, Type: p.Type, Upper: p.To, Work: p.Given, Unsaid: p.Unsaid, Number: int(p.Number)}
			at := nameOf(mt.At, "")
			at.fs = ns.topmost(mt.At, mt.Number)
			mt.in = at.fs
			ns.own = append(ns.own, mt)
			m.place(&mt, at)
			m.overlay(mt)
			m.mounts = max(m.mounts, mt.Number)
			continue
		}
		b := m.restored.bind(p.Number)
		if b == nil || slices.Contains(ns.binds, b) {
			continue
		}
		b.at, b.to = nameOf(p.Given, p.At), p.To
		if over := m.restored.bind(p.Over); over != b {
			b.at.over = over
		}
		ns.binds = append(ns.binds, b)
	}
}
