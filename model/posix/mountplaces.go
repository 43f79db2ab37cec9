// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
)

// place is where a file system is mounted. What it covers has the same names.
type place struct {
	at string
	in int // the file system that the directory is in: see Name.fs
	// empty says that nothing was in it when it was mounted: the trace tells of all that is.
	empty bool
}

// place notes where a file system is mounted.
func (m *Model) place(o *Mount, at Name) {
	if m.places == nil {
		m.places = map[int]*place{}
	}
	if len(m.places) < maxMounts {
		m.places[o.Number] = &place{at.Real, at.fs, o.Type == "tmpfs" || o.Type == "ramfs"}
	}
}

// unplace notes that a file system is mounted nowhere, unless another namespace has it.
func (m *Model) unplace(number int) {
	has := func(ns *Namespace) bool {
		return slices.ContainsFunc(ns.Own(), func(o Mount) bool { return o.Number == number })
	}
	if has(m.host) {
		return
	}
	for _, t := range m.threads {
		if has(t.FS.Mounts) {
			return
		}
	}
	delete(m.places, number)
}

// maxLinksIn bounds the file systems whose links are kept apart.
const maxLinksIn = 1 << 8

// linksIn returns what is known of the links in a file system: see Name.fs. A name below a mount is another one than
// that which the mount hides.
func (m *Model) linksIn(fs int) *links {
	if fs == 0 {
		return &m.links
	}
	l := m.inMounts[fs]
	if l == nil {
		if len(m.inMounts) >= maxLinksIn {
			return &m.links
		}
		if m.inMounts == nil {
			m.inMounts = map[int]*links{}
		}
		l = &links{fs: m.links.fs}
		if p := m.places[fs]; p != nil && p.empty {
			l.fs = nil
		}
		m.inMounts[fs] = l
	}
	l.began, l.now, l.made = m.links.began, m.links.now, m.links.made
	return l
}

// enter returns the file system that a name leads to, from which mount hides the directory: those that are mounted
// there, on each other.
func (ns *Namespace) enter(n Name) int {
	if ns == nil {
		return n.fs
	}
	fs := n.fs
	for i := range ns.own { // each is mounted on earlier ones, unless it was moved
		if o := &ns.own[i]; o.At == n.Real && o.in == fs && o.Number != fs {
			fs = o.Number
		}
	}
	return fs
}

// below returns the file system in which the directory above a name is.
func (m *Model) below(n Name) int {
	for range maxMounts {
		p := m.places[n.fs]
		if p == nil || p.at != n.Real {
			break
		}
		n.fs = p.in
	}
	return n.fs
}

// topmost returns the last file system mounted at or above a name, of those with numbers before one.
func (ns *Namespace) topmost(real string, before int) int {
	for _, o := range slices.Backward(ns.Own()) {
		if _, is := below(real, o.At); is && o.Number < before {
			return o.Number
		}
	}
	return 0
}

// fileSystemOf returns the file system of a name that the recording told, and whose mounts are below it: see Name.ns.
func (m *Model) fileSystemOf(t *Thread, base Name, p *event.Path, follow bool) (int, *Namespace) {
	if own := t.FS.Mounts.Own(); len(own) == 0 && !m.parted {
		return 0, nil
	}
	if n, _ := m.lookup(t, base, p.Raw, follow); n.Real == p.Reached() {
		return n.fs, n.ns
	}
	return t.FS.Mounts.topmost(p.Reached(), m.mounts+1), nil
}

// reaches reports whether a change of a name changes another one that is below it: no mount is between them that was
// made elsewhere.
func (m *Model) reaches(changed, n Name) bool {
	fs := n.fs
	for range maxMounts {
		if fs == changed.fs {
			return true
		}
		p := m.places[fs]
		if p == nil {
			return false // it is mounted nowhere, or is where others are mounted
		}
		if _, is := below(p.at, changed.Real); !is {
			return false
		}
		fs = p.in
	}
	return false
}

// inside reports whether a file system is another one, or mounted in it or in what is.
func (m *Model) inside(fs, other int) bool {
	for range maxMounts {
		if fs == other {
			return true
		}
		p := m.places[fs]
		if p == nil {
			return false
		}
		fs = p.in
	}
	return false
}

// detach ends a mount of a namespace, the i-th, and those in it (MNT_DETACH).
func (m *Model) detach(ns *Namespace, number, i int) {
	ended := []int{number}
	left := slices.Delete(slices.Clone(ns.own), i, i+1)
	ns.own = left[:0:0]
	for _, o := range left {
		if o.in != 0 && m.inside(o.in, number) {
			ended = append(ended, o.Number)
		} else {
			ns.own = append(ns.own, o)
		}
	}
	for _, n := range ended {
		m.unplace(n)
	}
}

// moveMount moves a file system, with what is open in it and mounted on it. It returns false if the name is not where
// one is mounted.
func (m *Model) moveMount(t *Thread, from, to Name) bool {
	p, ns := m.places[from.fs], m.namespace(t)
	if p == nil || p.at != from.Real || !strings.HasPrefix(to.Real, "/") ||
		!slices.ContainsFunc(ns.own, func(o Mount) bool { return o.Number == from.fs }) {
		return false
	}
	inside := func(fs int) bool { return m.inside(fs, from.fs) }
	if inside(to.fs) {
		return false // no kernel does that
	}
	var stay, move []Mount
	for _, o := range ns.own {
		if inside(o.Number) {
			move = append(move, o)
		} else {
			stay = append(stay, o)
		}
	}
	ns.own = append(stay, move...) // they cover others now
	for _, o := range move {
		m.linksIn(o.Number).move(from.Real, to.Real, false)
	}
	m.rename(func(n Name, _ bool) (Name, bool) {
		rest, is := below(n.Real, from.Real)
		if !is || !inside(n.fs) {
			return n, false
		}
		n.Given, n.Real = to.Given+rest, to.Real+rest
		return n, true
	})
	p.at, p.in = to.Real, to.fs
	for i := range ns.own {
		if o := &ns.own[i]; o.Number == from.fs {
			o.At, o.in = to.Real, to.fs
		}
	}
	return true
}

// moveBind moves a bind mount of a thread's namespace. It returns false if the name is not where one is mounted.
func (m *Model) moveBind(t *Thread, from, to Name) bool {
	ns, b := m.namespace(t), from.over
	i := slices.Index(ns.binds, b)
	if i < 0 || from.Real != b.to || !to.isFile() {
		return false
	}
	moved := *b // other namespaces have it where it was
	moved.at = to
	ns.binds = append(slices.Delete(slices.Clone(ns.binds), i, i+1), &moved)
	over := func(n *Name) {
		if n.over == b {
			n.over = &moved
		}
	}
	for _, o := range m.opens {
		if o.Now.ns == nil || o.Now.ns == ns {
			over(&o.Now)
		}
	}
	for _, other := range m.threads {
		if fs := other.FS; fs.Mounts == ns {
			cwd, root := fs.cwd(), fs.root()
			over(&cwd)
			over(&root)
			fs.overCwd, fs.overRoot = cwd.over, root.over
		}
	}
	return true
}

// renameOwn gives the mounts of a namespace the names that they have after the last rename. Their places are renamed
// when all names are.
func (m *Model) renameOwn(ns *Namespace, now func(n Name, gone bool) (Name, bool)) {
	if ns.renames == m.renames {
		return
	}
	ns.renames = m.renames
	for i := range ns.own {
		o := &ns.own[i]
		at := nameOf(o.At, "")
		at.fs = o.in
		if n, ok := now(at, false); ok {
			o.At = n.Real
			m.replaced = append(m.replaced, *o)
		}
	}
}

// replace gives renamed mounts their places.
func (m *Model) replace() {
	for _, o := range m.replaced {
		if p := m.places[o.Number]; p != nil {
			p.at = o.At
		}
	}
	m.replaced = m.replaced[:0]
}
