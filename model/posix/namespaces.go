// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"slices"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
)

// mntFact is where the facts of a process have its mount namespace.
var mntFact = slices.Index(facts.Namespaces[:], "mnt")

// maxEntrances bounds the mount namespaces that are known by inode.
const maxEntrances = 1 << 12

// belongs notes in which mount namespace a thread is, by its inode; 0 if that is not known.
func (m *Model) belongs(t *Thread, ino uint64) { m.entranceTo(ino, t.FS.Mounts) }

func (m *Model) entranceTo(ino uint64, ns *Namespace) {
	if ino == 0 || len(m.entrances) >= maxEntrances {
		return
	}
	if m.entrances == nil {
		m.entrances = map[uint64]*Namespace{}
	}
	m.entrances[ino] = ns
}

// byInode returns the mount namespace that an inode stands for, nil if none is known.
func (m *Model) byInode(ino uint64) *Namespace {
	ns, known := m.entrances[ino]
	if known && ns == nil {
		ns = m.ofHost()
	}
	return ns
}

// namespaceFile returns the mount namespace that the file of a name stands for (namespaces(7)): of a followed thread,
// also if it is bound to another name; nil if the name does not tell.
func (m *Model) namespaceFile(t *Thread, n Name) *Namespace {
	if n.over != nil && n.over.mnt != nil && n.Real == n.over.to {
		return n.over.mnt
	}
	pid, self, ok := namespaceOwner(n.Real)
	if self {
		return m.namespace(t)
	}
	if other := m.threads[pid]; ok && other != nil {
		return m.namespace(other)
	}
	return nil
}

// namespaceOwner returns whose mount namespace a name of /proc stands for.
func namespaceOwner(name string) (pid uint32, self, ok bool) {
	tail, proc := strings.CutPrefix(name, "/proc/")
	tail, mnt := strings.CutSuffix(tail, "/ns/mnt")
	if !proc || !mnt {
		return 0, false, false
	}
	if who, tid, ok := strings.Cut(tail, "/task/"); ok && tid != "" {
		tail = tid
	} else if who == "self" || who == "thread-self" {
		return 0, true, true
	}
	n, err := strconv.ParseUint(tail, 10, 32)
	return uint32(n), false, err == nil
}

// outside returns the mount namespace of a process that is not followed: the machine has its files below
// /proc/PID/root.
func outside(pid uint32) *Namespace {
	return &Namespace{root: nameOf("/proc/"+strconv.FormatUint(uint64(pid), 10)+"/root", "")}
}

// openedNamespace notes which mount namespace an open file stands for.
func (m *Model) openedNamespace(t *Thread, ev *event.Event, o *OpenFile) {
	n := m.found(ev, 0)
	if o.mnt = m.namespaceFile(t, n); o.mnt != nil {
		m.entranceTo(o.Ino, o.mnt)
		return
	}
	pid, _, ok := namespaceOwner(n.Real)
	if !ok {
		return
	}
	if o.mnt = m.byInode(o.Ino); o.mnt == nil {
		o.mnt = outside(pid)
		m.entranceTo(o.Ino, o.mnt)
	}
}

// namespaceOf returns the mounts of a process or thread.
func (m *Model) namespaceOf(pid uint32) *Namespace {
	if t := m.threads[pid]; t != nil {
		return m.namespace(t)
	}
	return outside(pid)
}

// entered moves a thread to another mount namespace, where it is in the root directory (setns(2)).
func (m *Model) entered(t *Thread, ev *event.Event) {
	d, kinds := t.Table.Lookup(int32(ev.Args[0])), ev.Args[1]
	if !ev.OK() || d == nil || kinds != 0 && kinds&event.NewMounts == 0 {
		return
	}
	ns := d.Open.mnt
	switch {
	case d.Open.PID != 0 && kinds&event.NewMounts != 0:
		ns = m.namespaceOf(d.Open.PID)
	case ns == nil:
		if ns = m.byInode(d.Open.Ino); ns == nil && kinds != 0 { // by a file that others bound to a name
			ns = outside(t.PID)
			m.entranceTo(d.Open.Ino, ns)
		}
	}
	if ns == nil {
		return
	}
	t.FS.Mounts = ns
	t.FS.setRoot(ns.root)
	m.setCwd(t, t.FS.root())
}

// depart notes that the files that a thread has open stay in its mount namespace when it, or its child, gets another
// (mount_namespaces(7)). In a namespace that nobody is in any more, nothing is mounted.
func (m *Model) depart(t *Thread, stays bool) {
	ns := t.FS.Mounts
	if ns == nil {
		ns = m.host
	}
	for _, other := range m.threads {
		stays = stays || other.FS != t.FS && other.FS.Mounts == t.FS.Mounts
	}
	if ns == nil || !stays && ns != m.host {
		ns = &Namespace{}
	}
	m.parted = true
	for _, d := range t.Table.slots {
		if n := &d.Open.Now; n.ns == nil {
			n.ns = ns
		}
	}
}
