// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
)

const (
	regular   = syscall.S_IFREG | 0o644
	directory = syscall.S_IFDIR | 0o755
)

// act is a call of a test: ino and fd are of its first descriptor, or of the result if
// it opens.
type act struct {
	op          event.Op
	path, path2 string
	ino         uint64
	open        event.OpenID
	off, n      int64
	ret         int64 // n if 0
	size        int64 // of the file, after the call
	errno       syscall.Errno
	args        [6]uint64
	flags       uint32
	mode        uint32 // of the file; regular if 0
	target      string
}

func (a act) event(tid uint32, enter, exit int64) *event.Event {
	ev := &event.Event{
		Op: a.op, TID: tid, PID: tid, Enter: enter, Exit: exit, Offset: a.off, Count: a.n, Ret: a.n, Errno: a.errno,
		Args: a.args,
	}
	if a.ret != 0 || a.errno != 0 {
		ev.Ret = a.ret
	}
	if a.errno != 0 {
		ev.Ret = -1
	}
	for i, p := range []string{a.path, a.path2} {
		if p != "" {
			ev.Paths = append(ev.Paths, event.Path{Arg: int8(i), Raw: p, Abs: p})
		}
	}
	if a.ino != 0 || a.open != 0 {
		f := event.File{
			FD: int32(a.open), Open: a.open, Known: a.ino != 0, Dev: 1, Ino: a.ino, Mode: regular, Nlink: 1,
			Size: a.size, Flags: a.flags,
		}
		if a.mode != 0 {
			f.Mode = a.mode
		}
		if a.path != "" {
			f.Arg, f.Path = event.ResultArg, a.path
		}
		ev.Files = append(ev.Files, f)
	}
	if a.target != "" {
		ev.Bufs = append(ev.Bufs, event.Buf{Arg: 0, Inline: append([]byte(a.target), 0)})
	}
	return ev
}

const (
	creat  = event.OpenCreat | 1
	rdonly = 0
)

func opens(path string, ino uint64, id event.OpenID) act {
	return act{op: event.OpOpen, path: path, ino: ino, open: id, size: 100}
}

func create(path string, ino uint64, id event.OpenID) act {
	return act{op: event.OpOpen, path: path, ino: ino, open: id, args: [6]uint64{0, creat}, flags: event.OpenCreat}
}

func openDir(path string, ino uint64, id event.OpenID) act {
	return act{op: event.OpOpen, path: path, ino: ino, open: id, mode: directory}
}

func at(op event.Op, ino uint64, id event.OpenID, off, n, size int64) act {
	return act{op: op, ino: ino, open: id, off: off, n: n, size: size}
}

func on(op event.Op, paths ...string) act {
	a := act{op: op, path: paths[0]}
	if len(paths) > 1 {
		a.path2 = paths[1]
	}
	return a
}

func failed(a act, e syscall.Errno) act { a.errno = e; return a }

// Which pairs of calls that overlapped, of two threads, keep their order, after what
// the first thread did before.
func TestResource(t *testing.T) {
	const r, w = event.OpPread64, event.OpPwrite64
	both := []act{opens("/f", 5, 3), opens("/f", 5, 4)}
	for _, c := range []struct {
		name   string
		before []act
		first  act
		then   act
		waits  bool
	}{
		// Names
		{"made and looked at", nil, on(event.OpMkdir, "/a"), on(event.OpStat, "/a"), true},
		{"looked at by both", nil, on(event.OpStat, "/a"), on(event.OpStat, "/a"), false},
		{"looked at, then made", nil, failed(on(event.OpStat, "/a"), syscall.ENOENT), on(event.OpMkdir, "/a"), true},
		{"made, and making it again failed", nil, on(event.OpMkdir, "/a"),
			failed(on(event.OpMkdir, "/a"), syscall.EEXIST), true},
		{"removed, then made again", nil, on(event.OpUnlink, "/a"), create("/a", 9, 3), true},
		{"an exclusive open that failed, then the removal", nil, failed(create("/a", 0, 0), syscall.EEXIST),
			on(event.OpUnlink, "/a"), true},
		{"other names of one directory", nil, on(event.OpMkdir, "/d/a"), on(event.OpMkdir, "/d/b"), false},
		{"a directory, and what is made in it", nil, on(event.OpMkdir, "/d"), on(event.OpMkdir, "/d/e"), true},
		{"what is removed, and its directory", nil, on(event.OpUnlink, "/d/f"), on(event.OpRmdir, "/d"), true},
		{"far below a directory that is renamed", nil, on(event.OpStat, "/d/e/f/g"), on(event.OpRename, "/d", "/x"),
			true},
		{"what is looked at where a directory was moved to", nil, on(event.OpRename, "/d", "/x"),
			on(event.OpStat, "/x/e/f"), true},
		{"missing below a name that is made then", nil, failed(on(event.OpStat, "/d/e"), syscall.ENOENT),
			on(event.OpMkdir, "/d"), true},
		{"next to a directory that is renamed", nil, on(event.OpStat, "/dd/e"), on(event.OpRename, "/d", "/x"), false},
		{"replaced by a rename and looked at", nil, on(event.OpRename, "/a", "/b"), on(event.OpStat, "/b"), true},
		{"a rename to the same name, and the removal", nil, on(event.OpRename, "/a", "/a"), on(event.OpUnlink, "/a"),
			true},
		{"a failed rename, and the removal of its target", nil,
			failed(on(event.OpRename, "/a", "/b"), syscall.ENOTEMPTY), on(event.OpRmdir, "/b"), true},
		{"a failed rmdir, and what is removed from it", nil, failed(on(event.OpRmdir, "/d"), syscall.ENOTEMPTY),
			on(event.OpUnlink, "/d/f"), true},
		{"through a symbolic link", []act{{op: event.OpSymlink, path: "/l", target: "/d"}}, on(event.OpMkdir, "/l/a"),
			on(event.OpStat, "/d/a"), true},
		{"at a symbolic link's end", []act{{op: event.OpSymlink, path: "/l", target: "f"}}, create("/l", 7, 3),
			on(event.OpStat, "/f"), true},
		{"a link in a circle, and the end of it", []act{{op: event.OpSymlink, path: "/l", target: "l"}},
			failed(opens("/l", 0, 0), syscall.ELOOP), on(event.OpUnlink, "/l"), true},
		{"a link that goes, and what was reached by it", []act{{op: event.OpSymlink, path: "/l", target: "/d"}},
			on(event.OpStat, "/l/a"), on(event.OpUnlink, "/l"), true},
		{"the mode of a directory, and what is in it", []act{on(event.OpStat, "/d/a")}, on(event.OpChmod, "/d"),
			on(event.OpStat, "/d/a"), true},
		{"an access list for what is made, and what is made", []act{on(event.OpStat, "/d")}, on(event.OpSetxattr, "/d"),
			create("/d/f", 9, 4), true},
		{"two names of one file after a rename of one to the other",
			[]act{opens("/a", 5, 3), on(event.OpLink, "/a", "/b"), on(event.OpRename, "/a", "/b")},
			on(event.OpUnlink, "/a"), at(event.OpFstat, 5, 3, -1, 0, 100), true},
		{"an access that was refused, and the permission", both, failed(on(event.OpAccess, "/f"), syscall.EACCES),
			act{op: event.OpFchmod, ino: 5, open: 4}, true},
		{"a permission that is taken back, and an access that was refused", both,
			act{op: event.OpFchmod, ino: 5, open: 4}, failed(on(event.OpAccess, "/f"), syscall.EACCES), true},
		{"an open that was refused, and the permission", both, failed(opens("/f", 0, 0), syscall.EACCES),
			on(event.OpChmod, "/f"), true},
		{"an attribute that was not there, and is set", both, failed(on(event.OpGetxattr, "/f"), syscall.ENODATA),
			act{op: event.OpFsetxattr, ino: 5, open: 4}, true},
		{"two that were refused", both, failed(on(event.OpAccess, "/f"), syscall.EACCES),
			failed(on(event.OpAccess, "/f"), syscall.EACCES), false},
		{"the mode of an open directory, and what is in it", []act{openDir("/d", 6, 8), on(event.OpStat, "/d/a")},
			act{op: event.OpFchmod, ino: 6, open: 8, mode: directory}, on(event.OpStat, "/d/a"), true},
		// Directories as lists
		{"made in a directory that is listed", []act{openDir("/d", 6, 8)}, on(event.OpMkdir, "/d/a"),
			at(event.OpGetdents64, 6, 8, -1, 64, 0), true},
		{"listed, then removed from", []act{openDir("/d", 6, 8)}, at(event.OpGetdents64, 6, 8, -1, 64, 0),
			on(event.OpUnlink, "/d/a"), true},
		{"listed by two", []act{openDir("/d", 6, 8), openDir("/d", 6, 9)}, at(event.OpGetdents64, 6, 8, -1, 64, 0),
			at(event.OpGetdents64, 6, 9, -1, 64, 0), false},
		{"made in another directory than is listed", []act{openDir("/d", 6, 8)}, on(event.OpMkdir, "/e/a"),
			at(event.OpGetdents64, 6, 8, -1, 64, 0), false},
		// Content
		{"one range, written twice", both, at(w, 5, 3, 0, 100, 9000), at(w, 5, 4, 50, 100, 9000), true},
		{"a write that another has made room for", both, at(w, 5, 3, 8192, 100, 8292), at(w, 5, 4, 200, 100, 8292),
			false},
		{"a write after another has made room, and its size was asked for",
			append(slices.Clone(both), at(w, 5, 3, 8192, 100, 8292)), at(event.OpFstat, 5, 3, -1, 0, 8292),
			at(w, 5, 4, 200, 100, 8292), false},
		{"nothing read where another has made room", both, at(w, 5, 3, 8192, 100, 8292), at(r, 5, 4, 4096, 100, 8292),
			true},
		{"nothing read, and more room made than that needs", append(slices.Clone(both), at(w, 5, 3, 8192, 100, 8292)),
			at(w, 5, 3, 16384, 100, 16484), at(r, 5, 4, 4096, 100, 16484), false},
		{"a write within what was there at first", both, at(w, 5, 3, 8192, 100, 8292), at(w, 5, 4, 0, 100, 8292),
			false},
		{"a pwrite to a file that is appended to, and what is read of its end", both,
			act{op: w, ino: 5, open: 3, off: 40960, n: 10, size: 110, flags: event.OpenAppend}, at(r, 5, 4, 90, 20, 110),
			true},
		{"one range, read twice", both, at(r, 5, 3, 0, 100, 9000), at(r, 5, 4, 50, 100, 9000), false},
		{"one range, written and read", both, at(w, 5, 3, 0, 100, 9000), at(r, 5, 4, 50, 100, 9000), true},
		{"pages apart", both, at(w, 5, 3, 0, 4096, 9000), at(w, 5, 4, 4096, 4096, 9000), false},
		{"large, overlapping", both, at(w, 5, 3, 0, 4<<20, 9<<20), at(r, 5, 4, 3<<20, 4096, 9<<20), true},
		{"large, apart", []act{{op: event.OpOpen, path: "/f", ino: 5, open: 3, size: 99 << 20},
			{op: event.OpOpen, path: "/f", ino: 5, open: 4, size: 99 << 20}}, at(w, 5, 3, 0, 4<<20, 99<<20),
			at(r, 5, 4, 5<<20, 4096, 99<<20), false},
		{"large reads, overlapping", both, at(r, 5, 3, 0, 4<<20, 9<<20), at(r, 5, 4, 1<<20, 4<<20, 9<<20), false},
		{"other files", []act{opens("/f", 5, 3), opens("/g", 6, 4)}, at(w, 5, 3, 0, 100, 9000),
			at(w, 6, 4, 0, 100, 9000), false},
		{"two names of one file", []act{opens("/f", 5, 3), opens("/hard", 5, 4)}, at(w, 5, 3, 0, 100, 9000),
			at(r, 5, 4, 0, 100, 9000), true},
		{"a hard link of the trace's", append(slices.Clone(both[:1]), on(event.OpLink, "/f", "/g")),
			at(w, 5, 3, 0, 100, 9000), on(event.OpTruncate, "/g"), true},
		{"cut by a hard link of which nothing else is known", append([]act{on(event.OpLink, "/f", "/g")}, both...),
			at(w, 5, 3, 0, 100, 9000), on(event.OpTruncate, "/g"), true},
		{"written, and cut by name", both[:1], at(w, 5, 3, 0, 100, 9000), on(event.OpTruncate, "/f"), true},
		{"cut, and read", both, at(event.OpFtruncate, 5, 3, 0, 0, 0), at(r, 5, 4, 0, 10, 0), true},
		{"emptied by an open", both[:1], at(r, 5, 3, 0, 10, 100),
			act{op: event.OpOpen, path: "/f", ino: 5, open: 4, args: [6]uint64{0, event.OpenTrunc | 1}}, true},
		{"opened again with O_CREAT, empty as it was",
			[]act{create("/f", 5, 3), {op: event.OpOpen, path: "/f", ino: 5, open: 4, args: [6]uint64{0, creat}}},
			at(w, 5, 4, 0, 10, 10), at(r, 5, 3, 0, 10, 10), true},
		{"a number that was given again", []act{opens("/f", 5, 3), on(event.OpUnlink, "/f"), create("/g", 5, 4)},
			at(w, 5, 3, 0, 10, 900), at(w, 5, 4, 0, 10, 900), false},
		{"read by the only one, and written by another", append(slices.Clone(both), at(r, 5, 3, 4096, 10, 9000)),
			at(r, 5, 3, 0, 10, 9000), at(w, 5, 4, 0, 10, 9000), true},
		{"read by the only one, and by another", append(slices.Clone(both), at(r, 5, 3, 4096, 10, 9000)),
			at(r, 5, 3, 0, 10, 9000), at(r, 5, 4, 0, 10, 9000), false},
		// Sizes
		{"grown, and its size asked for", both, at(w, 5, 3, 9000, 100, 9100), at(event.OpFstat, 5, 4, -1, 0, 9100),
			true},
		{"written inside, and its size asked for", both, at(w, 5, 3, 0, 100, 9100),
			at(event.OpFstat, 5, 4, -1, 0, 9100), false},
		{"grown, and a read that ended early", both, at(w, 5, 3, 9000, 100, 9100),
			act{op: r, ino: 5, open: 4, off: 0, n: 20000, ret: 9100, size: 9100}, true},
		{"grown, and read before the end", append(slices.Clone(both), act{op: event.OpFtruncate, ino: 5, open: 3}),
			at(w, 5, 3, 20480, 100, 20580), at(r, 5, 4, 0, 4096, 20580), true},
		{"grown in two places", both, at(w, 5, 3, 20000, 100, 20100), at(w, 5, 4, 40000, 100, 40100), false},
		{"grown, and appended to", both, at(w, 5, 3, 20000, 100, 20100),
			act{op: event.OpWrite, ino: 5, open: 4, off: 20100, n: 10, size: 20110, flags: event.OpenAppend}, true},
		{"two that append", both, act{op: event.OpWrite, ino: 5, open: 3, off: 100, n: 10, size: 110,
			flags: event.OpenAppend}, act{op: event.OpWrite, ino: 5, open: 4, off: 110, n: 10, size: 120,
			flags: event.OpenAppend}, true},
		{"grown, and seeking its end", both, at(w, 5, 3, 9000, 100, 9100),
			act{op: event.OpLseek, ino: 5, open: 4, args: [6]uint64{4, 0, 2}, size: 9100}, true},
		// Positions
		{"one position, read on by two", both[:1], at(event.OpRead, 5, 3, 0, 10, 100),
			at(event.OpRead, 5, 3, 10, 10, 100), true},
		{"two positions in one file", both, at(event.OpRead, 5, 3, 0, 10, 100), at(event.OpRead, 5, 4, 0, 10, 100),
			false},
		{"one open file, at given places", both[:1], at(r, 5, 3, 0, 10, 100), at(r, 5, 3, 0, 10, 100), false},
		{"a position moved and used", both[:1],
			act{op: event.OpLseek, ino: 5, open: 3, args: [6]uint64{3, 7, 0}, size: 100},
			at(event.OpRead, 5, 3, 7, 10, 100), true},
		{"flags that are set, and a write", both[:1],
			act{op: event.OpFcntl, ino: 5, open: 3, args: [6]uint64{3, 4, event.OpenAppend}, size: 100},
			act{op: event.OpFcntl, ino: 5, open: 3, args: [6]uint64{3, 3}, size: 100}, true},
		// Attributes and links
		{"mode set and looked at", both[:1], act{op: event.OpFchmod, ino: 5, open: 3}, on(event.OpStat, "/f"), true},
		{"attributes looked at by two", both, act{op: event.OpFgetxattr, ino: 5, open: 3},
			act{op: event.OpFgetxattr, ino: 5, open: 4}, false},
		{"an attribute set and read", both, act{op: event.OpFsetxattr, ino: 5, open: 3},
			act{op: event.OpFgetxattr, ino: 5, open: 4}, true},
		{"linked, and its links counted", both[:1], on(event.OpLink, "/f", "/g"),
			act{op: event.OpFstat, ino: 5, open: 3, size: 100}, true},
		{"unlinked, and its links counted", both[:1], on(event.OpUnlink, "/f"),
			act{op: event.OpFstat, ino: 5, open: 3, size: 100}, true},
		{"mode set, and content read", both, act{op: event.OpFchmod, ino: 5, open: 3}, at(r, 5, 4, 0, 10, 100), false},
		// Locks
		{"a lock taken and given back, as the returns have it", both,
			act{op: event.OpFlock, ino: 5, open: 4, args: [6]uint64{4, 2}},
			act{op: event.OpFlock, ino: 5, open: 3, args: [6]uint64{3, 8}}, false},
		{"a lock that was refused, and given back", both,
			act{op: event.OpFlock, ino: 5, open: 4, args: [6]uint64{4, 6}, errno: syscall.EAGAIN},
			act{op: event.OpFlock, ino: 5, open: 3, args: [6]uint64{3, 8}}, true},
		{"a lock given back and taken", both, act{op: event.OpFlock, ino: 5, open: 3, args: [6]uint64{3, 8}},
			act{op: event.OpFlock, ino: 5, open: 4, args: [6]uint64{4, 2}}, true},
		{"a lock taken, and one that failed", both, act{op: event.OpFlock, ino: 5, open: 3, args: [6]uint64{3, 2}},
			act{op: event.OpFlock, ino: 5, open: 4, args: [6]uint64{4, 6}, errno: syscall.EAGAIN}, true},
		{"two that failed", both, act{op: event.OpFlock, ino: 5, open: 3, args: [6]uint64{3, 6}, errno: syscall.EAGAIN},
			act{op: event.OpFlock, ino: 5, open: 4, args: [6]uint64{4, 6}, errno: syscall.EAGAIN}, false},
		{"a range locked, and asked for", both, act{op: event.OpFcntl, ino: 5, open: 3, args: [6]uint64{3, 6}},
			act{op: event.OpFcntl, ino: 5, open: 4, args: [6]uint64{4, 5}}, true},
		{"locked, and read", both, act{op: event.OpFlock, ino: 5, open: 3, args: [6]uint64{3, 2}},
			at(r, 5, 4, 0, 10, 100), false},
		// Durability
		{"written, and synced", both, at(w, 5, 3, 0, 10, 100), act{op: event.OpFsync, ino: 5, open: 4}, true},
		{"synced, and written meanwhile", both, act{op: event.OpFsync, ino: 5, open: 3}, at(w, 5, 4, 0, 10, 100),
			false},
		{"written, and everything synced", both, at(w, 5, 3, 0, 10, 100), act{op: event.OpSync}, true},
		{"synced by two", both, act{op: event.OpFsync, ino: 5, open: 3}, act{op: event.OpFsync, ino: 5, open: 4},
			false},
		// Pipes
		{"written to a pipe, and read", nil, act{op: event.OpWrite, ino: 40, open: 10, n: 5, mode: syscall.S_IFIFO},
			act{op: event.OpRead, ino: 40, open: 11, n: 5, mode: syscall.S_IFIFO}, true},
		{"written behind what is read", []act{{op: event.OpWrite, ino: 40, open: 10, n: 5, mode: syscall.S_IFIFO}},
			act{op: event.OpWrite, ino: 40, open: 10, n: 5, mode: syscall.S_IFIFO},
			act{op: event.OpRead, ino: 40, open: 11, n: 5, mode: syscall.S_IFIFO}, false},
		{"written, and read in part", []act{{op: event.OpWrite, ino: 40, open: 10, n: 5, mode: syscall.S_IFIFO}},
			act{op: event.OpWrite, ino: 40, open: 10, n: 5, mode: syscall.S_IFIFO},
			act{op: event.OpRead, ino: 40, open: 11, n: 6, mode: syscall.S_IFIFO}, true},
		{"other pipes", nil, act{op: event.OpWrite, ino: 40, open: 10, n: 5, mode: syscall.S_IFIFO},
			act{op: event.OpRead, ino: 41, open: 11, n: 5, mode: syscall.S_IFIFO}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := New(Resource)
			for _, a := range c.before {
				o.Place(0, a.event(1, 0, 1), true, nil)
			}
			for _, f := range o.files {
				if !strings.Contains(c.name, "only one") {
					f.share() // the first time that two use a file is another matter
				}
			}
			first, _ := o.Place(0, c.first.event(1, 10, 30), true, nil)
			_, deps := o.Place(1, c.then.event(2, 20, 40), true, nil)
			if waits := slices.ContainsFunc(deps,
				func(r Ref) bool { return r.Slot == 0 && r.Pos >= first.Pos }); waits != c.waits {
				t.Errorf("waits %v (%v), want %v", waits, deps, c.waits)
			}
		})
	}
}

// A write within a file that another thread has made longer waits for those who saw it
// shorter, and not for that other.
func TestWriteWithin(t *testing.T) {
	o := New(Resource)
	for slot := range uint32(3) {
		o.Place(slot, opens("/f", 5, event.OpenID(3+slot)).event(slot, 0, 1), true, nil)
	}
	now := int64(2)
	place := func(slot uint32, a act) (Ref, []Ref) {
		now += 2
		return o.Place(slot, a.event(slot, now, now+1), true, nil)
	}
	asked, _ := place(0, at(event.OpFstat, 5, 3, -1, 0, 100))
	longer, _ := place(1, at(event.OpPwrite64, 5, 4, 8192, 100, 8292))
	_, deps := place(2, at(event.OpPwrite64, 5, 5, 4096, 100, 8292))
	if !slices.Contains(deps, asked) || slices.Contains(deps, longer) {
		t.Errorf("waits for %v: not for %v that saw it shorter, or for %v that made it longer", deps, asked, longer)
	}
}

// What is remembered of a file's growth stays bounded, and who finds it longer than it was
// waits for one that made it so long.
func TestGrowthBounded(t *testing.T) {
	o := New(Resource)
	o.slots = make([]slot, 2)
	var g growth
	for i := range uint64(100_000) {
		o.self = Ref{0, i + 1}
		g.grows(o, int64(i+1)*10)
		if i == 20_000 {
			o.Done(0, 15_000)
		}
	}
	if len(g.steps) > 2*maxGrown {
		t.Errorf("%d steps", len(g.steps))
	}
	if g.safe < 150_000 {
		t.Errorf("safe %d, and 150,000 are done", g.safe)
	}
	for _, bytes := range []int64{200_000, 600_001, 1_000_000} {
		o.self, o.deps = Ref{1, 1}, nil
		o.slots[1].seen = nil
		g.await(o, bytes)
		if len(o.deps) != 1 || int64(o.deps[0].Pos)*10 < bytes {
			t.Errorf("%d bytes: waits for %v", bytes, o.deps)
		}
	}
}

// What each mode permits of the same calls.
func TestModes(t *testing.T) {
	a, b := at(event.OpPwrite64, 5, 3, 0, 10, 100), at(event.OpPwrite64, 6, 4, 0, 10, 100)
	for _, c := range []struct {
		mode            Mode
		then            act
		overlapping     bool
		waits, oneByOne bool
	}{
		{Recorded, b, true, false, true},
		{Overlap, b, true, false, false},
		{Overlap, b, false, true, false},
		{Overlap, at(event.OpPread64, 5, 3, 0, 10, 100), true, true, false},
		{Resource, b, false, false, false},
		{Resource, at(event.OpPread64, 5, 3, 0, 10, 100), false, true, false},
		{Causal, b, false, false, false},
	} {
		o := New(c.mode)
		o.Place(0, a.event(1, 10, 30), true, nil)
		enter := int64(40)
		if c.overlapping {
			enter = 20
		}
		slot := uint32(1)
		if c.oneByOne {
			slot = 0 // all are in one slot, which is what keeps them in order
		}
		if _, deps := o.Place(slot, c.then.event(2, enter, 50), true, nil); (len(deps) > 0) != c.waits {
			t.Errorf("%v, overlapping %v: waits for %v", c.mode, c.overlapping, deps)
		}
	}
}

// Overlap is the order of intervals, whatever the calls are: a task waits for all that
// had returned before it was made, and for no other.
func TestOverlapIsIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 5).Draw(t, "slots")
		o := New(Overlap)
		type placed struct {
			ref         Ref
			enter, exit int64
			before      map[Ref]bool // that are done when it begins
		}
		var all []placed
		last := make([]int64, slots)
		lastOf := make([]*placed, slots)
		exit := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "tasks") {
			slot := rapid.IntRange(0, slots-1).Draw(t, "slot")
			exit += rapid.Int64Range(1, 5).Draw(t, "exit")
			enter := rapid.Int64Range(last[slot], exit-1).Draw(t, "enter")
			ev := (&act{op: event.OpPread64, ino: uint64(100 + slot), open: event.OpenID(100 + slot),
				n: 1}).event(uint32(slot), enter, exit)
			ref, deps := o.Place(uint32(slot), ev, true, nil)
			p := placed{ref: ref, enter: enter, exit: exit, before: map[Ref]bool{}}
			add := func(r Ref) {
				for i := range all {
					if all[i].ref == r {
						for k := range all[i].before {
							p.before[k] = true
						}
					}
				}
				p.before[r] = true
			}
			for _, d := range deps {
				add(d)
			}
			if l := lastOf[slot]; l != nil {
				add(l.ref)
			}
			for i := range all {
				if want := all[i].exit < enter || all[i].ref.Slot == ref.Slot; want && !p.before[all[i].ref] {
					t.Fatalf("task %v made at %d need not wait for %v that had returned at %d", ref, enter, all[i].ref,
						all[i].exit)
				}
			}
			for _, d := range deps {
				for i := range all {
					if all[i].ref == d && all[i].exit >= enter {
						t.Fatalf("task %v made at %d waits for %v that returned at %d", ref, enter, d, all[i].exit)
					}
				}
			}
			all = append(all, p)
			last[slot], lastOf[slot] = exit, &all[len(all)-1]
		}
	})
}

// No task waits for one that was placed later, whatever is placed: no replay waits in a
// circle.
func TestNeverWaitsForward(t *testing.T) {
	paths := []string{"/a", "/b", "/a/c", "/a/c/d", "/b/e", "/l", "/l/c"}
	ops := []event.Op{event.OpOpen, event.OpMkdir, event.OpUnlink, event.OpRename, event.OpLink, event.OpStat,
		event.OpRmdir, event.OpSymlink, event.OpTruncate, event.OpChmod,
		event.OpRead, event.OpWrite, event.OpPread64, event.OpPwrite64, event.OpFsync, event.OpSync, event.OpFtruncate,
		event.OpGetdents64, event.OpFlock, event.OpLseek}
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]Mode{Overlap, Resource}).Draw(t, "mode")
		o := New(mode)
		placed := map[uint32]uint64{}
		now := int64(0)
		for i := range rapid.IntRange(1, 80).Draw(t, "tasks") {
			a := act{
				op: rapid.SampledFrom(ops).Draw(t, "op"), n: rapid.Int64Range(0, 9000).Draw(t, "n"),
				off: rapid.Int64Range(-1, 90000).Draw(t, "off"),
			}
			if p := rapid.IntRange(-1, len(paths)-1).Draw(t, "path"); p >= 0 {
				a.path, a.path2 = paths[p], rapid.SampledFrom(paths).Draw(t, "path2")
			}
			if rapid.Bool().Draw(t, "file") {
				a.ino, a.open = rapid.Uint64Range(1, 4).Draw(t, "ino"),
					event.OpenID(rapid.Uint64Range(1, 6).Draw(t, "open"))
			}
			if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
				a.errno = syscall.ENOENT
			}
			if a.op == event.OpSymlink {
				a.target = rapid.SampledFrom([]string{"/a", "c", "../b", "l", "/l/l"}).Draw(t, "target")
			}
			slot := rapid.Uint32Range(0, 3).Draw(t, "slot")
			now += 2
			ref, deps := o.Place(slot, a.event(slot, now-rapid.Int64Range(1, 20).Draw(t, "took"), now), true, nil)
			if ref.Pos != placed[slot]+1 {
				t.Fatalf("task %d is %v", i, ref)
			}
			for _, d := range deps {
				if d.Slot == slot || d.Pos > placed[d.Slot] {
					t.Fatalf("task %v waits for %v of %v", ref, d, placed)
				}
			}
			placed[slot]++
			if i%7 == 0 {
				o.Done(slot, placed[slot])
			}
			if i%20 == 19 {
				o.forget()
			}
		}
	})
}

func BenchmarkPlace(b *testing.B) {
	for _, threads := range []uint32{1, 4} {
		b.Run(fmt.Sprint(threads), func(b *testing.B) {
			o := New(Resource)
			var evs []*event.Event
			for i := range threads {
				o.Place(i, opens(fmt.Sprint("/", i), uint64(i+1), event.OpenID(i+1)).event(i, 0, 1), true, nil)
				a := at(event.OpPread64, uint64(i+1), event.OpenID(i+1), 4096, 4096, 1<<20)
				evs = append(evs, a.event(i, 2, 3))
			}
			var deps []Ref
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				k := uint32(n) % threads
				_, deps = o.Place(k, evs[k], true, deps)
			}
		})
	}
}
