// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
)

// Namespace is what the mount calls of a trace made of the names of some threads.
type Namespace struct {
	binds []*bind // later ones cover earlier ones
	own   []Mount
	root  Name // where its names begin; the zero Name: where those of the machine do
	// renames is Model.renames when the names of own were last made true.
	renames uint64
}

// clone returns the mounts of a new namespace that a thread makes.
func (ns *Namespace) clone() *Namespace {
	if ns == nil {
		return &Namespace{}
	}
	return &Namespace{slices.Clone(ns.binds), slices.Clone(ns.own), ns.root, ns.renames}
}

// Mount is a file system that the trace mounted, and that has no names elsewhere.
type Mount struct {
	At     string // where, without links
	Type   string // such as tmpfs; "" if the recording does not say
	Upper  string // an overlay's directory for what is written to it, without links; "": it has none
	Work   string // the overlay's work directory
	Unsaid bool   // it is an overlay of which the recording does not say these
	Number int    // from 1 on, among those of a model
	in     int    // see place
}

// Own returns the mounts of this kind, in the order in which they were made: later ones cover
// earlier ones. The caller must not change them.
func (ns *Namespace) Own() []Mount {
	if ns == nil {
		return nil
	}
	return ns.own
}

// maxMounts bounds the mounts that are remembered.
const maxMounts = 1 << 12

// mount adds a file system that has no names elsewhere.
func (m *Model) mount(t *Thread, at Name, mt Mount) {
	if ns := m.namespace(t); strings.HasPrefix(at.Real, "/") && len(ns.own) < maxMounts {
		m.mounts++
		mt.At, mt.Number, mt.in = at.Real, m.mounts, at.fs
		ns.own = append(ns.own, mt)
		m.place(&mt, at)
		m.overlay(mt)
	}
}

// bindMount lets the names below at lead to those below to, which was reached through a mount or not.
func (m *Model) bindMount(t *Thread, at, to Name) {
	ns := m.namespace(t)
	if at.isFile() && strings.HasPrefix(to.Real, "/") && len(ns.binds) < maxMounts {
		ns.binds = append(ns.binds, &bind{at: at, to: to.Real, mnt: m.namespaceFile(t, to)})
	}
}

// Host returns the mounts of the threads that have made no namespace of their own.
func (m *Model) Host() *Namespace { return m.host }

// bind lets the names below at lead to those below to. Namespaces share it.
type bind struct {
	at      Name
	to      string
	mnt     *Namespace // that the file to stands for
	renames uint64     // Model.renames when its names were last made true
}

// rename gives it the names that it has after the last rename.
func (b *bind) rename(renames uint64, now func(n Name, gone bool) (Name, bool)) {
	if b.renames == renames {
		return
	}
	b.renames = renames
	b.at, _ = now(b.at, false)
	to, _ := now(nameOf(b.to, ""), false)
	b.to = to.Real
}

// through returns what is mounted at a name without links; nil if nothing is.
func (ns *Namespace) through(real string) *bind {
	if ns == nil {
		return nil
	}
	for _, b := range slices.Backward(ns.binds) {
		if b.at.Real == real {
			return b
		}
	}
	return nil
}

// pivoted makes a directory the root of all threads of a mount namespace that had the root
// before, which is below it from then on (pivot_root(2)).
func (m *Model) pivoted(t *Thread, ev *event.Event) {
	if !ev.OK() || len(ev.Paths) != 2 {
		return
	}
	was := t.FS.root()
	now, put := m.found(ev, 0), m.found(ev, 1)
	if !now.isFile() {
		return
	}
	ns := m.namespace(t)
	ns.root = now
	for _, other := range m.threads {
		fs := other.FS
		if fs.Mounts != ns || fs.root().Real != was.Real {
			continue
		}
		if fs.cwd().isNot(was) {
			fs.Cwd = fs.cwd().Real // its given name began at the root before
		} else {
			fs.Cwd, fs.overCwd, fs.inCwd = now.Real, now.over, now.fs
		}
		fs.realCwd = ""
		fs.setRoot(Name{Given: now.Real, Real: now.Real, over: now.over, fs: now.fs})
	}
	if put.Real != now.Real {
		m.bindMount(t, put, was)
	}
}

// namespace returns the mounts of a thread, which are those of all threads of which nothing
// else is known.
func (m *Model) namespace(t *Thread) *Namespace {
	if t.FS.Mounts == nil {
		t.FS.Mounts = m.ofHost()
	}
	return t.FS.Mounts
}

// ofHost returns the mounts of all threads of which nothing else is known.
func (m *Model) ofHost() *Namespace {
	if m.host == nil {
		m.host = &Namespace{}
	}
	for _, other := range m.threads {
		if other.FS.Mounts == nil {
			other.FS.Mounts = m.host
		}
	}
	return m.host
}

// mounted learns a mount.
func (m *Model) mounted(t *Thread, ev *event.Event) {
	// MS_REMOUNT, and MS_UNBINDABLE, MS_PRIVATE, MS_SLAVE and MS_SHARED, mount nothing (mount(2)).
	const msRemount, msBind, msMove, propagation = 0x20, 0x1000, 0x2000, 0x1e0000
	// MS_BIND counts before MS_MOVE.
	if !ev.OK() || len(ev.Paths) != 1 || ev.Args[3]&(msRemount|propagation) != 0 {
		return
	}
	if ev.Args[3]&(msBind|msMove) == 0 {
		m.mount(t, m.found(ev, 0), m.fileSystem(t, textArg(ev, 2), textArg(ev, 4)))
		return
	}
	if source := textArg(ev, 0); source != "" {
		n, _ := m.lookup(t, t.FS.cwd(), source, true)
		if at := m.found(ev, 0); ev.Args[3]&msBind != 0 || !m.moveMount(t, n, at) && !m.moveBind(t, n, at) {
			m.bindMount(t, at, n)
		}
	}
}

// textArg returns the text of an argument, "" if the recording does not have it.
func textArg(ev *event.Event, arg int) string {
	b := ev.BufArg(arg)
	if b == nil {
		return ""
	}
	return strings.TrimRight(string(b.Inline), "\x00")
}

// attached learns a mount that was made without a name (fsmount(2)), or one of files that have
// another name already (open_tree(2), as mount --bind has it today, or a mount that moves).
func (m *Model) attached(t *Thread, ev *event.Event) {
	if !ev.OK() || len(ev.Paths) != 2 {
		return
	}
	at := m.found(ev, 1)
	if ev.Paths[0].Raw != "" {
		if from := m.found(ev, 0); !m.moveMount(t, from, at) && !m.moveBind(t, from, at) {
			m.bindMount(t, at, from)
		}
		return
	}
	d := t.Table.Lookup(int32(ev.Args[0]))
	switch {
	case d != nil && d.Open.fs != nil:
		m.mount(t, at, *d.Open.fs)
		if at.fs = m.mounts; at.isFile() {
			d.Open.Now = at
		}
	case d == nil || !strings.HasPrefix(d.Open.Path, "/"):
		m.mount(t, at, Mount{})
	case d.Open.Now.Real != "":
		m.bindMount(t, at, d.Open.Now)
	default:
		m.bindMount(t, at, nameOf(d.Open.Path, ""))
	}
}

// unmounted ends the last mount at a name.
func (m *Model) unmounted(t *Thread, ev *event.Event) {
	if !ev.OK() || len(ev.Paths) != 1 || t.FS.Mounts == nil {
		return
	}
	ns, at := t.FS.Mounts, m.found(ev, 0)
	for i, o := range slices.Backward(ns.own) {
		if o.At == at.Real && (at.fs == 0 || at.fs == o.Number) {
			m.detach(ns, o.Number, i)
			return
		}
	}
	for i, b := range slices.Backward(ns.binds) {
		if at.over == b && at.Real == b.to || at.Real == b.at.Real {
			ns.binds = slices.Delete(ns.binds, i, i+1)
			return
		}
	}
}

// setRoot changes the root directory; the zero Name is that of the machine.
func (fs *FS) setRoot(dir Name) {
	fs.Root, fs.realRoot, fs.overRoot = strings.TrimSuffix(dir.Given, "/"), dir.other(), dir.over
	fs.inRoot = dir.fs
}
