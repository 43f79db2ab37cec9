// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
)

// Namespace is what the mount calls of a trace made of the names of some threads.
type Namespace struct {
	binds []bind // later ones cover earlier ones
}

// bind lets the names below at lead to those below to.
type bind struct{ at, to string }

// through returns what is mounted at a name without links.
func (ns *Namespace) through(real string) (to string, ok bool) {
	if ns == nil {
		return "", false
	}
	for _, b := range slices.Backward(ns.binds) {
		if b.at == real {
			return b.to, true
		}
	}
	return "", false
}

// pivoted makes a directory the root of all threads of a mount namespace that had the root
// before, which is below it from then on (pivot_root(2)).
func (m *Model) pivoted(t *Thread, ev *event.Event) {
	if !ev.OK() || len(ev.Paths) != 2 {
		return
	}
	was := t.FS.root()
	now, put := ev.Paths[0].Reached(), ev.Paths[1].Reached()
	if !strings.HasPrefix(now, "/") {
		return
	}
	ns := m.namespace(t)
	for _, other := range m.threads {
		fs := other.FS
		if fs.Mounts != ns || fs.root().Real != was.Real {
			continue
		}
		if fs.cwd().Real == was.Real {
			fs.Cwd = now
		} else {
			fs.Cwd = fs.cwd().Real // its given name began at the root before
		}
		fs.realCwd, fs.Root, fs.realRoot = "", strings.TrimSuffix(now, "/"), ""
	}
	if put != "" && put != now {
		ns.binds = append(ns.binds, bind{put, was.Real})
	}
}

// namespace returns the mounts of a thread, which are those of all threads of which nothing
// else is known.
func (m *Model) namespace(t *Thread) *Namespace {
	if t.FS.Mounts == nil {
		t.FS.Mounts = &Namespace{}
		for _, other := range m.threads {
			if other.FS.Mounts == nil {
				other.FS.Mounts = t.FS.Mounts
			}
		}
	}
	return t.FS.Mounts
}

// mounted learns a bind mount.
func (m *Model) mounted(t *Thread, ev *event.Event) {
	const msRemount, msBind, msMove = 0x20, 0x1000, 0x2000
	if !ev.OK() || len(ev.Paths) != 1 || ev.Args[3]&(msBind|msMove) == 0 || ev.Args[3]&msRemount != 0 {
		return
	}
	at := ev.Paths[0].Reached()
	for i := range ev.Bufs {
		if b := &ev.Bufs[i]; b.Arg == 0 && len(b.Inline) > 0 {
			source := strings.TrimRight(string(b.Inline), "\x00")
			if n, _ := m.lookup(t, t.FS.cwd(), source, true); n.Real != "" && at != "" && n.Real != at {
				ns := m.namespace(t)
				ns.binds = append(ns.binds, bind{at, n.Real})
			}
		}
	}
}

// unmounted ends the bind mount at a name.
func (m *Model) unmounted(t *Thread, ev *event.Event) {
	if !ev.OK() || len(ev.Paths) != 1 || t.FS.Mounts == nil {
		return
	}
	ns := t.FS.Mounts
	for i, b := range slices.Backward(ns.binds) {
		if b.to == ev.Paths[0].Reached() || b.at == ev.Paths[0].Abs {
			ns.binds = slices.Delete(ns.binds, i, i+1)
			return
		}
	}
}
