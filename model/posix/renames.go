// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"strings"

	"github.com/iotape/iotape/event"
)

// moved follows a rename: whatever is at or below a name is now at or below another.
func (m *Model) moved(_ *Thread, ev *event.Event) {
	if !ev.OK() || len(ev.Paths) != 2 {
		return
	}
	from := nameOf(ev.Paths[0].Abs, ev.Paths[0].Real)
	to := nameOf(ev.Paths[1].Abs, ev.Paths[1].Real)
	if !from.isFile() || !to.isFile() || from.Real == to.Real {
		return
	}
	if _, inside := below(to.Real, from.Real); inside {
		return // no kernel does that
	}
	from.fs, to.fs = m.ends[0].fs, m.ends[1].fs
	if m.linksIn(from.fs).same(from.Real, to.Real) {
		return // nothing happens (rename(2))
	}
	exchange := ev.Exchanges()
	if !exchange {
		m.gone(to)
	}
	m.linksIn(from.fs).move(from.Real, to.Real, exchange)
	m.rename(func(n Name, gone bool) (Name, bool) {
		if gone && (n.Real == from.Real || n.Real == to.Real) {
			return n, false // that is another file
		}
		if !exchange && !m.reaches(from, n) {
			return n, false // so is that: a mount covers the one or the other
		}
		return n.moved(from, to, exchange)
	})
}

// moved returns a name after a rename, or an exchange, of what it is, or is below.
func (n Name) moved(from, to Name, exchange bool) (Name, bool) {
	rest, real := below(n.Real, from.Real)
	back := false // it goes the other way
	if !real && exchange {
		rest, back = below(n.Real, to.Real)
	}
	tail, given := below(n.Given, from.Given)
	if given {
		n.Given = to.Given + tail // also if only a link on its way was renamed
	} else if tail, given = below(n.Given, to.Given); given && exchange {
		n.Given = from.Given + tail
	} else {
		given = false
	}
	if back {
		from, to = to, from
	}
	if !real && !back {
		return n, given
	}
	n.Real = to.Real + rest
	if !given {
		n.Given = to.Given + rest
	}
	return n, true
}

// rename gives open files, and working and root directories, the names that they have now.
func (m *Model) rename(now func(n Name, gone bool) (Name, bool)) {
	m.renames++
	defer m.replace()
	mounts := func(ns *Namespace) {
		if ns == nil {
			return
		}
		for _, b := range ns.binds {
			b.rename(m.renames, now)
		}
		m.renameOwn(ns, now)
	}
	mounts(m.host)
	for _, o := range m.opens {
		if n, ok := now(o.Now, o.Gone); ok {
			o.Now = n
		}
	}
	for key, was := range m.handles {
		if n, ok := now(was, false); ok {
			m.handles[key] = n
		}
	}
	for _, t := range m.threads {
		if t.FS.renames == m.renames {
			continue // of another thread, too
		}
		t.FS.renames = m.renames
		mounts(t.FS.Mounts)
		if n, ok := now(t.FS.cwd(), t.FS.gone); ok {
			t.FS.Cwd, t.FS.realCwd = n.Given, n.other()
		}
		if t.FS.Root == "" {
			continue
		}
		if n, ok := now(t.FS.root(), false); ok {
			t.FS.Root, t.FS.realRoot = n.Given, n.other()
		}
	}
}

// created notes that a name is not that of a symbolic link, whatever it is when the file system is asked: it was made
// as something else. Whether an open without O_EXCL made it, not every back end says.
func (m *Model) created(_ *Thread, ev *event.Event) {
	const exclusive = event.OpenCreat | event.OpenExcl
	if !ev.OK() || len(ev.Paths) == 0 {
		return
	}
	if mode, _ := ev.NameUse(0); mode == event.NameOpen && ev.OpenFlags()&exclusive != exclusive {
		return
	}
	if name := ev.Paths[0].Reached(); strings.HasPrefix(name, "/") {
		m.linksIn(m.ends[0].fs).tell(name, "")
	}
}

// removed notes that a name is nobody's any more.
func (m *Model) removed(_ *Thread, ev *event.Event) {
	if ev.OK() && len(ev.Paths) == 1 {
		m.gone(m.found(ev, 0))
	}
}

func (m *Model) gone(was Name) {
	name := was.Real
	if !strings.HasPrefix(name, "/") {
		return
	}
	m.linksIn(was.fs).tell(name, "")
	for _, o := range m.opens {
		if o.Now.fs != was.fs {
			continue
		}
		if o.Now.Real == name {
			o.Gone = true
		} else if _, below := below(o.Now.Real, name); below && o.Gone {
			o.Now = Name{} // in a directory that is gone as well
		}
	}
	for _, t := range m.threads {
		if cwd := t.FS.cwd(); cwd.fs != was.fs {
			continue
		} else if cwd.Real == name {
			t.FS.gone = true
		} else if _, below := below(cwd.Real, name); below && cwd.gone {
			t.FS.Cwd, t.FS.realCwd, t.FS.gone = "", "", false
		}
	}
}

// linked learns a symbolic link that a call made.
func (m *Model) linked(_ *Thread, ev *event.Event) {
	if !ev.OK() || len(ev.Paths) != 1 {
		return
	}
	for i := range ev.Bufs {
		if b := &ev.Bufs[i]; b.Arg == 0 && len(b.Inline) > 0 {
			target := strings.TrimRight(string(b.Inline), "\x00")
			m.learn(ev, target)
			if name := ev.Paths[0].Reached(); m.links.fs != nil && strings.HasPrefix(name, "/") {
				if m.links.made == nil {
					m.links.made = &madeLinks{}
				}
				m.links.made.add(name, target, ev.Enter, ev.Exit)
			}
		}
	}
}

// readLink learns a symbolic link that a call read.
func (m *Model) readLink(_ *Thread, ev *event.Event) {
	if !ev.OK() || len(ev.Paths) != 1 {
		return
	}
	for i, a := range ev.Spec().Args {
		if a.Kind != event.KindBuf || int(a.LenArg) >= len(ev.Args) {
			continue
		}
		b, size := ev.BufArg(i), int64(ev.Args[a.LenArg])
		if b != nil && int64(len(b.Inline)) == ev.Ret && 0 < ev.Ret && ev.Ret < size { // else it may be cut
			m.learn(ev, string(b.Inline))
		}
	}
}

func (m *Model) learn(ev *event.Event, target string) {
	if name := ev.Paths[0].Reached(); strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "/proc/") {
		m.linksIn(m.ends[0].fs).tell(name, target)
	}
}
