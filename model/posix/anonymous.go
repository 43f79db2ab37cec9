// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
)

// deleted is what stands behind the name of a file that has none any more.
const deleted = " (deleted)"

// openedName returns the name of the file that an event opened. A file of O_TMPFILE was
// given no name but that of its directory.
func (m *Model) openedName(ev *event.Event, f *event.File) (given, real string) {
	const tmpfile = 0o20000000
	if ev.Op.Like() == event.OpOpenByHandleAt {
		n := m.handles[handleKey(ev, 1)]
		return n.Given, n.other()
	}
	if len(ev.Paths) == 0 {
		return anonymousName(ev, f), ""
	}
	p := &ev.Paths[0]
	if ev.OpenFlags()&tmpfile != 0 && f.Known && p.Abs != "" {
		return p.Abs, join(p.Reached(), "#"+strconv.FormatUint(f.Ino, 10)) + deleted
	}
	return p.Abs, p.Real
}

// nameless reports whether the file had no name when it was opened.
func (o *OpenFile) nameless() bool { return strings.HasSuffix(o.Now.Real, deleted) }

// anonymous has how /proc/PID/fd calls what is no file, by the operation that makes it.
var anonymous = map[event.Op]string{
	event.OpEventfd:       "anon_inode:[eventfd]",
	event.OpEventfd2:      "anon_inode:[eventfd]",
	event.OpEpollCreate:   "anon_inode:[eventpoll]",
	event.OpEpollCreate1:  "anon_inode:[eventpoll]",
	event.OpSignalfd:      "anon_inode:[signalfd]",
	event.OpSignalfd4:     "anon_inode:[signalfd]",
	event.OpTimerfdCreate: "anon_inode:[timerfd]",
	event.OpInotifyInit:   "anon_inode:inotify",
	event.OpInotifyInit1:  "anon_inode:inotify",
	event.OpFanotifyInit:  "anon_inode:[fanotify]",
	event.OpIoUringSetup:  "anon_inode:[io_uring]",
	event.OpUserfaultfd:   "anon_inode:[userfaultfd]",
	event.OpPerfEventOpen: "anon_inode:[perf_event]",
	event.OpPidfdOpen:     "anon_inode:[pidfd]",
	event.OpFsopen:        "anon_inode:[fscontext]",
	event.OpFspick:        "anon_inode:[fscontext]",
}

// anonymousName returns how /proc/PID/fd calls what an event made without a name; "" if
// that is not known.
func anonymousName(ev *event.Event, f *event.File) string {
	if ev.Op.Like() == event.OpMemfdCreate {
		for i := range ev.Bufs {
			if b := &ev.Bufs[i]; b.Arg == 0 {
				return "/memfd:" + strings.TrimRight(string(b.Inline), "\x00") + deleted
			}
		}
	}
	return anonymous[ev.Op.Like()]
}

// named notes that a file has one more name. It gives a file that was opened without a name (O_TMPFILE) the one that
// a link gave it.
func (m *Model) named(t *Thread, ev *event.Event) {
	if !ev.OK() || len(ev.Paths) != 2 {
		return
	}
	from, to := ev.Paths[0].Reached(), ev.Paths[1].Reached()
	if strings.HasPrefix(from, "/") && strings.HasPrefix(to, "/") && !strings.HasPrefix(from, "/proc/") {
		m.linksIn(m.ends[0].fs).join(from, to)
	}
	fd, rest, ok := DescriptorPath(ev.Paths[0].Raw, ev.PID)
	if ev.Paths[0].Raw == "" {
		fd, ok = int32(ev.Args[0]), true
	}
	tab := t.Table
	if ev.Paths[0].Raw != "" {
		tab = m.Meant(t, ev.Paths[0].Raw).Table
	}
	if d := tab.Lookup(fd); ok && rest == "" && d != nil && d.Open.Gone {
		d.Open.Now = nameOf(ev.Paths[1].Abs, ev.Paths[1].Real)
		d.Open.Gone = false
	}
}

// executes learns the names of the programs that an execve maps.
func (m *Model) executes(t *Thread, ev *event.Event) {
	if m.links.fs == nil || len(ev.Paths) == 0 {
		return
	}
	p := &ev.Paths[0]
	if name := p.Reached(); strings.HasPrefix(name, "/") {
		m.program(nameOf(p.Abs, p.Real))
		for _, loader := range m.links.fs.Loaders(name) {
			if n, _ := m.lookup(t, t.FS.root(), loader, true); n.Real != "" {
				m.program(n)
			}
		}
	}
}

// program notes the name of a program that execve maps.
func (m *Model) program(n Name) {
	if dev, ino := m.links.fs.Inode(n.Real); ino != 0 {
		m.keepProgram(fileID{dev, ino}, n)
	}
}

// runs learns which file a process executes, which may have no name any more when a
// recording is sealed. What a script's name leads to is not that file: it has another name
// in its directory.
func (m *Model) runs(t *Thread, ev *event.Event) {
	for i := range ev.Files {
		f, n := &ev.Files[i], t.Space.program
		if _, last := split(n.Real); f.Known && n.isFile() && last == f.Path {
			m.keepProgram(fileID{f.Dev, f.Ino}, n)
		}
	}
	ev.Files = nil // it is said of the process by name
	if f := facts.Of(ev); f != nil {
		m.belongs(t, f.Namespaces[mntFact])
	}
}

func (m *Model) keepProgram(id fileID, n Name) {
	const most = 1 << 12
	if _, known := m.programs[id]; known || len(m.programs) < most {
		m.programs[id] = n
	}
}
