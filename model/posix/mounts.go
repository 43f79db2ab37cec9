// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"slices"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
)

// Namespace is what the mount calls of a trace made of the names of some threads.
type Namespace struct {
	binds []*bind // later ones cover earlier ones
	own   []Mount
	root  Name // where its names begin; the zero Name: where those of the machine do
}

// clone returns the mounts of a new namespace that a thread makes.
func (ns *Namespace) clone() *Namespace {
	if ns == nil {
		return &Namespace{}
	}
	return &Namespace{slices.Clone(ns.binds), slices.Clone(ns.own), ns.root}
}

// Mount is a file system that the trace mounted, and that has no names elsewhere.
type Mount struct {
	At     string // where, without links
	Type   string // such as tmpfs; "" if the recording does not say
	Data   string // its options, as mount(2) passes them; "" likewise
	Number int    // from 1 on, among those of a model
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
func (m *Model) mount(t *Thread, at, fstype, data string) {
	if ns := m.namespace(t); strings.HasPrefix(at, "/") && len(ns.own) < maxMounts {
		m.mounts++
		ns.own = append(ns.own, Mount{At: at, Type: fstype, Data: data, Number: m.mounts})
	}
}

// bindMount lets the names below at lead to those below to.
func (m *Model) bindMount(t *Thread, at Name, to string) {
	ns := m.namespace(t)
	if at.isFile() && strings.HasPrefix(to, "/") && len(ns.binds) < maxMounts {
		ns.binds = append(ns.binds, &bind{at: at, to: to})
	}
}

// Host returns the mounts of the threads that have made no namespace of their own.
func (m *Model) Host() *Namespace { return m.host }

// bind lets the names below at lead to those below to. Namespaces share it.
type bind struct {
	at      Name
	to      string
	renames uint64 // Model.renames when its names were last made true
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
			fs.Cwd, fs.overCwd = now.Real, now.over
		}
		fs.realCwd = ""
		fs.setRoot(Name{now.Real, now.Real, now.over})
	}
	if put.Real != now.Real {
		m.bindMount(t, put, was.Real)
	}
}

// namespace returns the mounts of a thread, which are those of all threads of which nothing
// else is known.
func (m *Model) namespace(t *Thread) *Namespace {
	if t.FS.Mounts == nil {
		t.FS.Mounts = &Namespace{}
		m.host = t.FS.Mounts
		for _, other := range m.threads {
			if other.FS.Mounts == nil {
				other.FS.Mounts = t.FS.Mounts
			}
		}
	}
	return t.FS.Mounts
}

// mounted learns a mount.
func (m *Model) mounted(t *Thread, ev *event.Event) {
	// MS_REMOUNT, and MS_UNBINDABLE, MS_PRIVATE, MS_SLAVE and MS_SHARED, mount nothing (mount(2)).
	const msRemount, msBind, msMove, propagation = 0x20, 0x1000, 0x2000, 0x1e0000
	if !ev.OK() || len(ev.Paths) != 1 || ev.Args[3]&(msRemount|propagation) != 0 {
		return
	}
	if ev.Args[3]&(msBind|msMove) == 0 {
		m.mount(t, ev.Paths[0].Reached(), textArg(ev, 2), textArg(ev, 4))
		return
	}
	if source := textArg(ev, 0); source != "" {
		n, _ := m.lookup(t, t.FS.cwd(), source, true)
		m.bindMount(t, m.found(ev, 0), n.Real)
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
		m.bindMount(t, at, ev.Paths[0].Reached())
		return
	}
	d := t.Table.Lookup(int32(ev.Args[0]))
	switch {
	case d == nil || !strings.HasPrefix(d.Open.Path, "/"):
		m.mount(t, at.Real, "", "")
	case d.Open.Now.Real != "":
		m.bindMount(t, at, d.Open.Now.Real)
	default:
		m.bindMount(t, at, d.Open.Path)
	}
}

// unmounted ends the last mount at a name.
func (m *Model) unmounted(t *Thread, ev *event.Event) {
	if !ev.OK() || len(ev.Paths) != 1 || t.FS.Mounts == nil {
		return
	}
	ns, at := t.FS.Mounts, m.found(ev, 0)
	for i, o := range slices.Backward(ns.own) {
		if o.At == at.Real {
			ns.own = slices.Delete(ns.own, i, i+1)
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

// namespaceFile returns the mount namespace that an event opened (namespaces(7)): of a followed thread, or of another
// process, whose files the machine has below /proc/PID/root.
func (m *Model) namespaceFile(t *Thread, ev *event.Event) *Namespace {
	if len(ev.Paths) == 0 {
		return nil
	}
	tail, ok := strings.CutPrefix(ev.Paths[0].Reached(), "/proc/")
	tail, mnt := strings.CutSuffix(tail, "/ns/mnt")
	if !ok || !mnt {
		return nil
	}
	if who, tid, ok := strings.Cut(tail, "/task/"); ok && tid != "" {
		tail = tid
	} else if who == "self" || who == "thread-self" {
		return m.namespace(t)
	}
	pid, err := strconv.ParseUint(tail, 10, 32)
	if err != nil {
		return nil
	}
	return m.namespaceOf(uint32(pid))
}

// namespaceOf returns the mounts of a process or thread.
func (m *Model) namespaceOf(pid uint32) *Namespace {
	if t := m.threads[pid]; t != nil {
		return m.namespace(t)
	}
	root := "/proc/" + strconv.FormatUint(uint64(pid), 10) + "/root"
	return &Namespace{root: nameOf(root, "")}
}

// entered moves a thread to another mount namespace, where it is in the root directory (setns(2)).
func (m *Model) entered(t *Thread, ev *event.Event) {
	d := t.Table.Lookup(int32(ev.Args[0]))
	if !ev.OK() || d == nil {
		return
	}
	ns := d.Open.mnt
	if d.Open.PID != 0 && ev.Args[1]&event.NewMounts != 0 {
		ns = m.namespaceOf(d.Open.PID)
	}
	if ns == nil {
		return
	}
	t.FS.Mounts = ns
	t.FS.setRoot(ns.root)
	m.setCwd(t, t.FS.root())
}

// setRoot changes the root directory; the zero Name is that of the machine.
func (fs *FS) setRoot(dir Name) {
	fs.Root, fs.realRoot, fs.overRoot = strings.TrimSuffix(dir.Given, "/"), dir.other(), dir.over
}
