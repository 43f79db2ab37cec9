// SPDX-License-Identifier: Apache-2.0

package posix_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
)

// named returns a call with names and, if fd is not negative, the descriptor that it made.
func named(op event.Op, fd int32, args []uint64, names ...string) *event.Event {
	ev := &event.Event{Op: op, PID: 1, TID: 1, Ret: int64(max(fd, 0))}
	copy(ev.Args[:], args)
	spec, next := ev.Spec(), 0
	for i := range spec.Args {
		if spec.Args[i].Kind == event.KindPath && next < len(names) {
			ev.Paths = append(ev.Paths, event.Path{Arg: int8(i), Raw: names[next]})
			next++
		}
	}
	if fd >= 0 {
		f := event.File{Arg: event.ResultArg, FD: fd, Known: true, Ino: 100 + uint64(fd), Mode: syscall.S_IFREG}
		ev.Files = []event.File{f}
	}
	return ev
}

func text(ev *event.Event, s string) *event.Event {
	ev.Bufs = append(ev.Bufs, event.Buf{Kind: event.KindText, Inline: []byte(s + "\x00")})
	return ev
}

// What a name leads to depends on the links, mounts and root directories before it.
func TestNamesLeadWhereTheKernelGoes(t *testing.T) {
	cwd := ^uint64(99) // AT_FDCWD
	does := func(op event.Op, names ...string) *event.Event { return named(op, -1, nil, names...) }
	link := func(name, target string) *event.Event { return text(does(event.OpSymlink, name), target) }
	open := func(name string) *event.Event { return named(event.OpOpenat, 5, []uint64{cwd}, name) }
	mkdirat := func(name string) *event.Event { return named(event.OpMkdirat, -1, []uint64{5}, name) }
	type list = []*event.Event
	how := named(event.OpOpenat2, 6, []uint64{5}, "/x/../../y")
	how.Bufs = []event.Buf{{Arg: 2, Kind: event.KindStruct,
		Inline: append(make([]byte, 16), 0x10, 0, 0, 0, 0, 0, 0, 0)}}
	for name, c := range map[string]struct {
		before    []*event.Event
		ev        *event.Event
		abs, real string
	}{
		"a link at the end": {list{link("l", "real/f")}, open("l"), "/home/l", "/home/real/f"},
		"a link on the way": {list{link("l", "real")}, open("l/f"), "/home/l/f", "/home/real/f"},
		"not followed":      {list{link("l", "real")}, does(event.OpLstat, "l"), "/home/l", ""},
		"not followed by its flag": {list{link("l", "r")},
			named(event.OpNewfstatat, -1, []uint64{cwd, 0, 0, 0x100}, "l"), "/home/l", ""},
		"followed by its flag": {list{link("l", "r")},
			named(event.OpLinkat, -1, []uint64{cwd, 0, cwd, 0, 0x400}, "l", "n"), "/home/l", "/home/r"},
		"followed by its slash":      {list{link("l", "r")}, does(event.OpLstat, "l/"), "/home/l", "/home/r"},
		"the directory above a link": {list{link("l", "a/b")}, open("l/../t"), "/home/a/t", ""},
		"a link to a link":           {list{link("l", "m"), link("m", "/r")}, open("l/f"), "/home/l/f", "/r/f"},
		"a circle of links":          {list{link("l", "m"), link("m", "l")}, open("l/f"), "/home/l/f", ""},
		"a link that was renamed": {list{link("l", "r"), does(event.OpRename, "l", "m")},
			open("m/f"), "/home/m/f", "/home/r/f"},
		"a link that was removed": {list{link("l", "r"), does(event.OpUnlink, "l")},
			open("l/f"), "/home/l/f", ""},
		"the working directory": {list{does(event.OpChdir, "d")}, open("/proc/self/cwd/f"), "/home/d/f", ""},
		"a working directory that was renamed": {list{does(event.OpChdir, "d"),
			does(event.OpRename, "../d", "../e")}, open("f"), "/home/e/f", ""},
		"an open directory that was renamed": {list{open("d"), does(event.OpRename, "d", "e")},
			mkdirat("f"), "/home/e/f", ""},
		"an open directory above one that was renamed": {list{open("d/e"), does(event.OpRename, "d", "x")},
			mkdirat("../f"), "/home/x/f", ""},
		"directories that were exchanged": {list{open("d"),
			named(event.OpRenameat2, -1, []uint64{cwd, 0, cwd, 0, 2}, "d", "e")},
			mkdirat("f"), "/home/e/f", ""},
		"below another root": {list{does(event.OpChroot, "jail")}, open("/../etc"), "/home/jail/etc", ""},
		"a link below another root": {list{link("jail/l", "/etc"), does(event.OpChroot, "jail")},
			open("/l/f"), "/home/jail/etc/f", ""},
		"after pivot_root": {list{does(event.OpChdir, "jail"),
			does(event.OpPivotRoot, ".", "old")}, open("/etc/f"), "/home/jail/etc/f", ""},
		"the old root after pivot_root": {list{does(event.OpChdir, "jail"),
			does(event.OpPivotRoot, ".", "old")}, open("/old/etc/f"), "/etc/f", ""},
		"below a bind mount": {list{text(named(event.OpMount, -1, []uint64{0, 0, 0, 0x1000}, "m"), "d")},
			open("m/f"), "/home/d/f", ""},
		"where a bind mount was": {list{text(named(event.OpMount, -1, []uint64{0, 0, 0, 0x1000}, "m"), "d"),
			does(event.OpUmount2, "m")}, open("m/f"), "/home/m/f", ""},
		"below a bind mount by open_tree": {list{open("d"),
			named(event.OpMoveMount, -1, []uint64{5, 0, cwd, 0, 4}, "", "m")}, open("m/f"), "/home/d/f", ""},
		"below a mount that was moved": {list{named(event.OpMoveMount, -1, []uint64{cwd, 0, cwd}, "d", "m")},
			open("m/f"), "/home/d/f", ""},
		"in a root of its own": {list{open("d")}, how, "/home/d/y", ""},
	} {
		s := start(t)
		for _, ev := range c.before {
			s.apply(ev)
		}
		s.apply(c.ev)
		if got := c.ev.Paths[0]; got.Abs != c.abs || got.Real != c.real {
			t.Errorf("%s: %q is %q, really %q; want %q, really %q", name, got.Raw, got.Abs, got.Real, c.abs, c.real)
		}
	}
}

// What has no name is called as /proc/PID/fd calls it.
func TestNamesOfWhatHasNone(t *testing.T) {
	cwd := ^uint64(99)
	tmpfile := named(event.OpOpenat, 5, []uint64{cwd, 0, syscall.O_RDWR | 0o20200000}, "d")
	for name, c := range map[string]struct {
		ev   *event.Event
		want string
	}{
		"eventfd":  {named(event.OpEventfd2, 5, nil), "anon_inode:[eventfd]"},
		"epoll":    {named(event.OpEpollCreate1, 5, nil), "anon_inode:[eventpoll]"},
		"timerfd":  {named(event.OpTimerfdCreate, 5, nil), "anon_inode:[timerfd]"},
		"inotify":  {named(event.OpInotifyInit1, 5, nil), "anon_inode:inotify"},
		"pidfd":    {named(event.OpPidfdOpen, 5, nil), "anon_inode:[pidfd]"},
		"signalfd": {named(event.OpSignalfd4, 5, nil), "anon_inode:[signalfd]"},
		"io_uring": {named(event.OpIoUringSetup, 5, nil), "anon_inode:[io_uring]"},
		"memfd":    {text(named(event.OpMemfdCreate, 5, nil), "mem"), "/memfd:mem (deleted)"},
	} {
		s := start(t)
		s.apply(c.ev)
		if _, got := s.lookup(1, 5); got != c.want {
			t.Errorf("%s: the descriptor is %q, want %q", name, got, c.want)
		}
	}
	s := start(t)
	s.apply(tmpfile)
	if f := tmpfile.Files[0]; f.Path != "/home/d" || f.Real != "/home/d/#105 (deleted)" {
		t.Errorf("a file of O_TMPFILE is %q, really %q; want /home/d, really /home/d/#105 (deleted)", f.Path, f.Real)
	}
	s.apply(named(event.OpLinkat, -1, []uint64{cwd, 0, cwd, 0, 0x400}, "/proc/self/fd/5", "f"))
	if got, want := s.m.Thread(1, 1).Table.Lookup(5).Open.Now.Real, "/home/f"; got != want {
		t.Errorf("a file of O_TMPFILE that was linked is %q, want %q", got, want)
	}
}

// A file that a name is taken from does not have the name that another gets by it.
func TestRenameLeavesRemovedFilesAlone(t *testing.T) {
	s := start(t)
	s.open(1, "f", 3, 0)
	s.apply(named(event.OpUnlink, -1, nil, "f"))
	s.open(1, "f", 4, 0)
	s.apply(named(event.OpRename, -1, nil, "f", "g"))
	table := s.m.Thread(1, 1).Table
	if o := table.Lookup(3).Open; !o.Gone || o.Now.Real != "/home/f" {
		t.Errorf("the removed file is %q (gone %v), want /home/f, gone", o.Now.Real, o.Gone)
	}
	if o := table.Lookup(4).Open; o.Gone || o.Now.Real != "/home/g" {
		t.Errorf("the renamed file is %q (gone %v), want /home/g", o.Now.Real, o.Gone)
	}
	ev := call(event.OpWrite, 1, 1, 4)
	ev.Files = []event.File{{FD: 4}}
	s.apply(ev)
	if f := ev.Files[0]; f.Path != "/home/f" || f.Real != "/home/g" {
		t.Errorf("a write to it is to %q, really %q; want /home/f, really /home/g", f.Path, f.Real)
	}
}

// laterLinks is a file system in which every name below /home is a link when it is asked.
type laterLinks struct{}

func (laterLinks) Readlink(name string) (k posix.Link) {
	if strings.HasPrefix(name, "/home/") {
		k.Target, k.Since, k.Born = "/elsewhere", -1e9, -1e9
	}
	return k
}
func (laterLinks) Inode(string) (dev, ino uint64) { return 0, 0 }
func (laterLinks) Loaders(string) []string        { return nil }

// What a call made as something else is no link, although it is one by the time that the file system is asked.
func TestMadeNamesAreNoLinks(t *testing.T) {
	cwd := ^uint64(99) // AT_FDCWD
	for name, c := range map[string]struct {
		made *event.Event
		want string
	}{
		"mkdir":          {named(event.OpMkdir, -1, nil, "d"), "/home/d/f"},
		"mkdirat":        {named(event.OpMkdirat, -1, []uint64{cwd}, "d"), "/home/d/f"},
		"exclusive open": {named(event.OpOpen, 7, []uint64{0, 0o300}, "d"), "/home/d/f"},
		"nothing":        {named(event.OpLstat, -1, nil, "d"), "/elsewhere/f"},
	} {
		s := start(t)
		s.m.Ask(laterLinks{})
		s.apply(c.made)
		ev := named(event.OpLstat, -1, nil, "d/f")
		s.apply(ev)
		if got := ev.Paths[0].Reached(); got != c.want {
			t.Errorf("%s: want %s, got %s", name, c.want, got)
		}
	}
}

// madeAt is a file system with one link, which is told of when it was made and changed.
type madeAt struct{ link posix.Link }

func (m madeAt) Readlink(name string) posix.Link {
	if name == "/home/d" {
		return m.link
	}
	return posix.Link{}
}
func (madeAt) Inode(string) (dev, ino uint64) { return 0, 0 }
func (madeAt) Loaders(string) []string        { return nil }

// A link that the file system has when it is asked is believed of the time when it had that name.
func TestLinksOfTheirTime(t *testing.T) {
	const began, second = 15, 1e9 // see start
	for name, c := range map[string]struct {
		born, since, at int64 // ns
		want            string
	}{
		"made before the recording":              {began - second, began - second, began + second, "/elsewhere/f"},
		"made before it, and changed since":      {began - second, began + 9*second, began + second, "/elsewhere/f"},
		"made by others during it":               {began + second, began + second, began + 2*second, "/elsewhere/f"},
		"made later":                             {began + 9*second, began + 9*second, began + second, "/home/d/f"},
		"made during it, and got its name later": {began + second, began + 9*second, began + 2*second, "/home/d/f"},
	} {
		s := start(t)
		s.m.Ask(madeAt{posix.Link{Target: "/elsewhere", Born: c.born, Since: c.since}})
		ev := named(event.OpLstat, -1, nil, "d/f")
		ev.Enter, ev.Exit = c.at, c.at
		s.apply(ev)
		if got := ev.Paths[0].Reached(); got != c.want {
			t.Errorf("%s: want %s, got %s", name, c.want, got)
		}
	}

	// Of a file that is renamed, what is later a link at its first name says nothing.
	s := start(t)
	s.m.Ask(madeAt{posix.Link{Target: "/elsewhere", Born: began + 9*second, Since: began + 9*second}})
	for i, ev := range []*event.Event{named(event.OpLstat, -1, nil, "d/f"), named(event.OpRename, -1, nil, "d", "e"),
		named(event.OpLstat, -1, nil, "e/f")} {
		ev.Enter = began + int64(i)*20*second
		ev.Exit = ev.Enter
		s.apply(ev)
		if got, want := ev.Paths[0].Reached(), "/home/e/f"; i == 2 && got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

// A link that the trace made is where the trace says, also if the file system has it at another name when it is asked:
// that name was another file's before a directory was renamed. If both are names of one file, it is a link.
func TestLinksThatTheTraceMade(t *testing.T) {
	const began, second = 15, 1e9 // see start
	for name, c := range map[string]struct {
		born   int64
		target string
		inodes map[string]uint64
		want   string
	}{
		"moved":                        {began + second, "/elsewhere", map[string]uint64{"/home/d": 5}, "/home/d/f"},
		"moved, and its name given":    {began + second, "/elsewhere", map[string]uint64{"/home/d": 5, "/home/l": 6}, "/home/d/f"},
		"another name of its":          {began + second, "/elsewhere", map[string]uint64{"/home/d": 5, "/home/l": 5}, "/elsewhere/f"},
		"another one, by its time":     {began + 2*second, "/elsewhere", map[string]uint64{"/home/d": 5}, "/elsewhere/f"},
		"another one, with its target": {began + second, "/other", map[string]uint64{"/home/d": 5}, "/other/f"},
	} {
		s := start(t)
		s.m.Ask(inodes{madeAt{posix.Link{Target: c.target, Born: c.born, Since: c.born}}, c.inodes})
		link := named(event.OpSymlink, -1, nil, "l")
		link.Bufs = []event.Buf{{Kind: event.KindText, Inline: []byte("/elsewhere")}}
		link.Enter, link.Exit = began+second, began+second
		s.apply(link)
		ev := named(event.OpLstat, -1, nil, "d/f")
		ev.Enter, ev.Exit = began+9*second, began+9*second
		s.apply(ev)
		if got := ev.Paths[0].Reached(); got != c.want {
			t.Errorf("%s: want %s, got %s", name, c.want, got)
		}
	}
}

// inodes is a file system with numbers of files.
type inodes struct {
	madeAt
	of map[string]uint64
}

func (n inodes) Inode(name string) (dev, ino uint64) { return 1, n.of[name] }

// A thread of another mount namespace has its names: of a child that clone(2) gave one, and of one that setns(2) puts
// into that of another process.
func TestMountNamespaces(t *testing.T) {
	s := start(t)
	s.apply(&event.Event{Kind: event.Forked, PID: 1, TID: 1, Child: 2, Ret: 2, Args: [6]uint64{event.NewMounts}})
	const msBind = 0x1000
	child := func(ev *event.Event) *event.Event {
		ev.PID, ev.TID = 2, 2
		s.apply(ev)
		return ev
	}
	mount := named(event.OpMount, -1, []uint64{0, 0, 0, msBind}, "at")
	mount.Bufs = []event.Buf{{Kind: event.KindText, Inline: []byte("source")}}
	child(mount)
	reached := func(got *event.Event, want string) {
		t.Helper()
		if got := got.Paths[0].Reached(); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
	reached(child(named(event.OpLstat, -1, nil, "at/f")), "/home/source/f")
	own := named(event.OpLstat, -1, nil, "at/f")
	s.apply(own)
	reached(own, "/home/at/f")

	// Process 1 goes there, and to that of a process that is not recorded, and comes back.
	for _, c := range []struct{ opened, name, want string }{
		{"/proc/2/ns/mnt", "/home/at/f", "/home/source/f"},
		{"/proc/99/ns/mnt", "/home/at/f", "/proc/99/root/home/at/f"},
		{"/proc/99/ns/mnt", "../f", "/proc/99/root/f"},
	} {
		back := named(event.OpOpen, 7, nil, "/proc/self/ns/mnt")
		s.apply(back)
		open := named(event.OpOpen, 8, nil, c.opened)
		open.Files[0].Ino = uint64(len(c.opened)) // another for each namespace
		s.apply(open)
		s.apply(named(event.OpSetns, -1, []uint64{8}))
		ev := named(event.OpLstat, -1, nil, c.name)
		s.apply(ev)
		reached(ev, c.want)
		s.apply(named(event.OpSetns, -1, []uint64{7, event.NewMounts}))
		ev = named(event.OpLstat, -1, nil, "/home/at/f")
		s.apply(ev)
		reached(ev, "/home/at/f")
	}
}

// Above a bind mount is the directory that it is mounted in, also when that was renamed; an unmount ends this mount.
func TestAboveMounts(t *testing.T) {
	s := start(t)
	const msBind = 0x1000
	mount := func(from, at string) {
		ev := named(event.OpMount, -1, []uint64{0, 0, 0, msBind}, at)
		ev.Bufs = []event.Buf{{Kind: event.KindText, Inline: []byte(from)}}
		s.apply(ev)
	}
	reached := func(name, want string) {
		t.Helper()
		ev := named(event.OpLstat, -1, nil, name)
		s.apply(ev)
		if got := ev.Paths[0].Reached(); got != want {
			t.Errorf("%s: want %s, got %s", name, want, got)
		}
	}
	mount("/", "d/root")
	mount("a/b", "d/at")
	reached("d/at/f", "/home/a/b/f")
	reached("d/at/../f", "/home/d/f")
	reached("d/at/c/../../f", "/home/d/f")
	reached("d/root/etc/../../f", "/home/d/f")
	reached("d/root/../../f", "/home/f")
	s.apply(named(event.OpChdir, -1, nil, "d/at"))
	reached("../f", "/home/d/f")
	s.apply(named(event.OpRename, -1, nil, "/home/d", "/home/e"))
	reached("../f", "/home/e/f")
	reached("/home/e/at/f", "/home/a/b/f")
	s.apply(named(event.OpUmount2, -1, nil, "/home/e/root"))
	reached("/home/e/root/f", "/home/e/root/f")
	reached("/home/e/at/f", "/home/a/b/f")
	s.apply(named(event.OpUmount2, -1, nil, "/home/e/at"))
	reached("/home/e/at/f", "/home/e/at/f")
}

// The way up from a directory that a mount hides leads into what is mounted.
func TestUpIntoMount(t *testing.T) {
	s := start(t)
	s.apply(named(event.OpOpenat, 5, []uint64{^uint64(99)}, "d/in"))
	s.apply(text(named(event.OpMount, -1, nil, "d"), "t"))
	s.apply(text(named(event.OpSymlinkat, -1, []uint64{0, 5}, "../l"), "to"))
	ev := named(event.OpStat, -1, nil, "d/l/f")
	s.apply(ev)
	if got := ev.Paths[0].Reached(); got != "/home/d/to/f" {
		t.Errorf("a link made above the hidden directory leads to %s, want /home/d/to/f", got)
	}
}

// What was opened in a mount namespace that a thread left sees nothing of what is mounted in the next one.
func TestOpenInLeftNamespace(t *testing.T) {
	s := start(t)
	const newMounts = 0x20000
	s.apply(named(event.OpOpenat, 5, []uint64{^uint64(99)}, "d"))
	s.apply(named(event.OpUnshare, -1, []uint64{newMounts}))
	s.apply(text(named(event.OpMount, -1, nil, "d/in"), "t"))
	s.apply(text(named(event.OpSymlinkat, -1, []uint64{0, 5}, "in/l"), "to"))
	for name, want := range map[string]string{
		"d/in/l/f": "/home/d/in/l/f", "/proc/self/fd/5/in/l/f": "/home/d/in/to/f",
	} {
		ev := named(event.OpStat, -1, nil, name)
		s.apply(ev)
		if got := ev.Paths[0].Reached(); got != want {
			t.Errorf("%s leads to %s, want %s", name, got, want)
		}
	}
}

// The state of a thread has its root directory.
func TestStateHasRoot(t *testing.T) {
	s := start(t)
	s.apply(named(event.OpChroot, -1, nil, "jail"))
	s.apply(named(event.OpChdir, -1, nil, "/d"))
	next := posix.New()
	for ev := range s.m.State(posix.NewFacts()) {
		next.Apply(ev)
	}
	for name, want := range map[string]string{"/f": "/home/jail/f", "f": "/home/jail/d/f", "../../f": "/home/jail/f"} {
		ev := named(event.OpLstat, -1, nil, name)
		next.Apply(ev)
		if got := ev.Paths[0].Reached(); got != want {
			t.Errorf("%s: want %s, got %s", name, want, got)
		}
	}
}

// The state of threads has their mounts: which names lead where, what is above a mount, and which threads share them.
func TestStateHasMounts(t *testing.T) {
	s := start(t)
	const msBind, msMove = 0x1000, 0x2000
	mount := func(pid uint32, flags uint64, from, at, fstype string) {
		ev := named(event.OpMount, -1, []uint64{0, 0, 0, flags}, at)
		ev.PID, ev.TID = pid, pid
		ev.Bufs = []event.Buf{{Kind: event.KindText, Inline: []byte(from)},
			{Arg: 2, Kind: event.KindText, Inline: []byte(fstype)}}
		s.apply(ev)
	}
	fork := func(child uint32, flags uint64) {
		s.apply(&event.Event{Kind: event.Forked, PID: 1, TID: 1, Child: child, Ret: int64(child),
			Args: [6]uint64{flags}})
	}
	fork(2, 0)
	fork(3, event.NewMounts)
	mount(1, msBind, "a/b", "d/at", "")
	mount(1, 0, "none", "t", "tmpfs")
	mount(3, msBind, "c", "d/at", "")
	mount(3, msMove, "d/at", "d/moved", "")
	s.apply(named(event.OpChdir, -1, nil, "d/at"))
	s.apply(named(event.OpOpen, 5, nil, "/home/d/at"))
	pivot := func(op event.Op, names ...string) {
		ev := named(op, -1, nil, names...)
		ev.PID, ev.TID = 3, 3
		s.apply(ev)
	}
	pivot(event.OpPivotRoot, "/home/d/moved", "/home/d/moved/old")
	s.apply(named(event.OpOpen, 6, nil, "/proc/self/ns/mnt"))

	next := posix.New()
	next.Ask(laterLinks{}) // which nothing here is: the names of a state are true
	for ev := range s.m.State(posix.NewFacts()) {
		next.Apply(ev.Clone())
	}
	next.Ask(nil)
	for _, m := range []*posix.Model{s.m, next} {
		for _, c := range []struct {
			pid        uint32
			name, want string
			fd         uint64
		}{
			{pid: 1, name: "f", want: "/home/a/b/f"}, {pid: 1, name: "../f", want: "/home/d/f"},
			{pid: 1, name: "../f", fd: 5, want: "/home/d/f"},
			{pid: 2, name: "/home/d/at/f", want: "/home/a/b/f"}, {pid: 3, name: "/f", want: "/home/c/f"},
			{pid: 3, name: "/old/x", want: "/x"},
		} {
			ev := named(event.OpMkdirat, -1, []uint64{^uint64(99)}, c.name)
			if ev.PID, ev.TID = c.pid, c.pid; c.fd != 0 {
				ev.Args[0] = c.fd
			}
			m.Apply(ev)
			if got := ev.Paths[0].Reached(); got != c.want {
				t.Errorf("%d: %s: want %s, got %s", c.pid, c.name, c.want, got)
			}
		}
		if own := m.Host().Own(); len(own) != 1 || own[0].At != "/home/t" || own[0].Type != "tmpfs" {
			t.Errorf("mounts of the machine: want a tmpfs at /home/t, got %v", own)
		}
	}
	// What is unmounted later is the mount of before.
	for _, pid := range []uint32{1, 2} {
		ev := named(event.OpUmount2, -1, nil, "/home/d/at")
		if ev.PID, ev.TID = pid, pid; pid == 1 {
			next.Apply(ev)
		}
		ev = named(event.OpLstat, -1, nil, "/home/d/at/f")
		ev.PID, ev.TID = pid, pid
		next.Apply(ev)
		if got, want := ev.Paths[0].Reached(), "/home/d/at/f"; got != want {
			t.Errorf("%d: after the unmount want %s, got %s", pid, want, got)
		}
	}
}

// A mount namespace is entered by the name that its file is bound to, also if nobody says which process made it.
func TestBoundNamespaces(t *testing.T) {
	const msBind = 0x1000
	s := start(t)
	s.apply(&event.Event{Kind: event.Forked, PID: 1, TID: 1, Child: 2, Ret: 2, Args: [6]uint64{event.NewMounts}})
	child := func(ev *event.Event) {
		ev.PID, ev.TID = 2, 2
		s.apply(ev)
	}
	bind := func(from, at string) *event.Event {
		ev := named(event.OpMount, -1, []uint64{0, 0, 0, msBind}, at)
		ev.Bufs = []event.Buf{{Kind: event.KindText, Inline: []byte(from)}}
		return ev
	}
	child(bind("source", "at"))
	s.apply(bind("/proc/2/ns/mnt", "kept"))
	s.apply(named(event.OpOpen, 7, nil, "/proc/self/ns/mnt"))
	s.apply(&event.Event{Kind: event.Exited, PID: 2, TID: 2})
	for _, c := range []struct {
		opened string
		ino    uint64
		want   string
	}{
		{"kept", 50, "/home/source/f"}, {"unknown", 50, "/home/source/f"}, {"/proc/99/ns/mnt", 50, "/home/source/f"},
		{"other", 51, "/proc/1/root/home/at/f"}, {"/proc/98/ns/mnt", 52, "/proc/98/root/home/at/f"},
		{"another", 52, "/proc/98/root/home/at/f"}, {"its own", 107, "/home/at/f"},
	} {
		open := named(event.OpOpen, 8, nil, c.opened)
		open.Files[0].Ino = c.ino
		s.apply(open)
		s.apply(named(event.OpSetns, -1, []uint64{8, event.NewMounts}))
		ev := named(event.OpLstat, -1, nil, "/home/at/f")
		s.apply(ev)
		if got := ev.Paths[0].Reached(); got != c.want {
			t.Errorf("%s: want %s, got %s", c.opened, c.want, got)
		}
		s.apply(named(event.OpSetns, -1, []uint64{7, event.NewMounts}))
	}
	// A network namespace has no names.
	s.apply(named(event.OpOpen, 8, nil, "/run/netns/x"))
	s.apply(named(event.OpSetns, -1, []uint64{8, 0x40000000}))
	ev := named(event.OpLstat, -1, nil, "/f")
	s.apply(ev)
	if got := ev.Paths[0].Reached(); got != "/f" {
		t.Errorf("after another namespace want /f, got %s", got)
	}
}
