// SPDX-License-Identifier: Apache-2.0

package linearize_test

import (
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
)

// world is a file system in a few lines: what calls return when they are made one after
// the other. It makes the histories of the tests, and checks the orders.
type world struct {
	names map[string]*inode
	next  uint64
	opens map[event.OpenID]*opened
}

type inode struct {
	ino   uint64
	dir   bool
	size  int64
	links int64
	locks map[event.OpenID]bool // of flock; whether exclusive
}

type opened struct {
	*inode
	pos    int64
	append bool
}

// op is a call as a test wants it; outcome what it returned.
type op struct {
	op       event.Op
	a, b     string
	flags    uint64
	off, len int64
	open     event.OpenID // that it uses, or makes
}

type answer struct {
	ret, size, pos int64
	errno          syscall.Errno
	ino            uint64
	dir, created   bool
	append         bool // the open file does
	links          int64
	list           string // names in the directory, each with a slash before it
}

func newWorld() *world {
	return &world{
		names: map[string]*inode{"/": {ino: 1, dir: true}, "/w": {ino: 2, dir: true}}, next: 3,
		opens: map[event.OpenID]*opened{},
	}
}

func (w *world) fresh(dir bool) *inode {
	w.next++
	return &inode{ino: w.next, dir: dir, links: 1}
}

func (w *world) list(dir string) string {
	var list []string
	for n := range w.names {
		if n != dir && path.Dir(n) == dir {
			list = append(list, "/"+path.Base(n))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "")
}

func (w *world) empty(dir string) bool {
	return w.list(dir) == ""
}

// do makes a call.
func (w *world) do(o *op) (r answer) {
	if o.a == "" {
		return w.onOpen(o)
	}
	n := w.names[o.a]
	fail := func(e syscall.Errno) answer { return answer{ret: -1, errno: e} }
	parent := w.names[path.Dir(o.a)]
	if n == nil && parent == nil {
		return fail(syscall.ENOENT)
	}
	switch o.op {
	case event.OpOpen:
		return w.openName(o, n)
	case event.OpMkdir:
		if n != nil {
			return fail(syscall.EEXIST)
		}
		w.names[o.a] = w.fresh(true)
		return answer{}
	}
	if n == nil {
		return fail(syscall.ENOENT)
	}
	switch o.op {
	case event.OpStat:
		return answer{ino: n.ino, dir: n.dir, size: n.size, links: n.links}
	case event.OpGetdents64: // of a directory that is not removed
		return answer{ret: 100, ino: n.ino, dir: true, list: w.list(o.a)}
	case event.OpUnlink:
		if n.dir {
			return fail(syscall.EISDIR)
		}
		n.links--
		delete(w.names, o.a)
	case event.OpRmdir:
		switch {
		case !n.dir:
			return fail(syscall.ENOTDIR)
		case !w.empty(o.a):
			return fail(syscall.ENOTEMPTY)
		}
		delete(w.names, o.a)
	case event.OpTruncate:
		if n.dir {
			return fail(syscall.EISDIR)
		}
		n.size = o.off
	case event.OpLink, event.OpRename:
		return w.pair(o, n)
	}
	return answer{}
}

// openName opens a name that stands for n, nil if it is absent.
func (w *world) openName(o *op, n *inode) answer {
	fail := func(e syscall.Errno) answer { return answer{ret: -1, errno: e} }
	r := answer{ret: int64(o.open)}
	switch {
	case n == nil && o.flags&event.OpenCreat == 0:
		return fail(syscall.ENOENT)
	case n == nil:
		n = w.fresh(false)
		w.names[o.a], r.created = n, true
	case o.flags&event.OpenExcl != 0:
		return fail(syscall.EEXIST)
	case n.dir:
		return fail(syscall.EISDIR)
	case o.flags&event.OpenTrunc != 0:
		n.size = 0
	}
	w.opens[o.open] = &opened{inode: n, append: o.flags&event.OpenAppend != 0}
	r.ino, r.size = n.ino, n.size
	return r
}

// pair makes a call on two names, of which the first stands for n.
func (w *world) pair(o *op, n *inode) answer {
	to := w.names[o.b]
	fail := func(e syscall.Errno) answer { return answer{ret: -1, errno: e} }
	switch {
	case w.names[path.Dir(o.b)] == nil:
		return fail(syscall.ENOENT)
	case o.op == event.OpLink && to != nil:
		return fail(syscall.EEXIST)
	case n.dir:
		return fail(syscall.EPERM) // tests move and link files only
	case o.op == event.OpLink:
		w.names[o.b] = n
		n.links++
		return answer{}
	case to != nil && to.dir:
		return fail(syscall.EISDIR)
	case to != n:
		if to != nil {
			to.links--
		}
		delete(w.names, o.a)
		w.names[o.b] = n
	}
	return answer{}
}

func (w *world) onOpen(o *op) answer {
	f := w.opens[o.open]
	r := answer{ino: f.ino, append: f.append}
	switch o.op {
	case event.OpFstat:
	case event.OpFlock:
		return f.flock(o)
	case event.OpWrite:
		if f.append {
			f.pos = f.size
		}
		f.pos += o.len
		f.size = max(f.size, f.pos)
		r.ret = o.len
	case event.OpRead:
		r.ret = max(0, min(o.len, f.size-f.pos))
		f.pos += r.ret
	case event.OpPwrite64:
		f.size = max(f.size, o.off+o.len)
		r.ret = o.len
	case event.OpPread64:
		r.ret = max(0, min(o.len, f.size-o.off))
	case event.OpFtruncate:
		f.size = o.off
	case event.OpLseek:
		f.pos = o.off
		if o.flags == 2 {
			f.pos += f.size
		}
		r.ret = f.pos
	}
	r.size, r.pos, r.links = f.size, f.pos, f.links
	return r
}

// flock is a call of flock that does not wait (LOCK_NB).
func (n *inode) flock(o *op) answer {
	had, has := n.locks[o.open]
	exclusive := o.flags&2 != 0
	if o.flags&8 != 0 || has && had != exclusive {
		delete(n.locks, o.open) // also if it is not granted another then
	}
	if o.flags&8 != 0 {
		return answer{ino: n.ino}
	}
	for by, other := range n.locks {
		if by != o.open && (exclusive || other) {
			return answer{ret: -1, errno: syscall.EAGAIN, ino: n.ino}
		}
	}
	if n.locks == nil {
		n.locks = map[event.OpenID]bool{}
	}
	n.locks[o.open] = exclusive
	return answer{ino: n.ino}
}

// event writes a call and what it returned as a tape has it.
func (o *op) event(tid uint32, enter, exit int64, r answer) event.Event {
	ev := event.Event{
		Op: o.op, PID: 1, TID: tid, Enter: enter, Exit: exit, Ret: r.ret, Errno: r.errno, Offset: -1, Count: -1,
	}
	if o.op == event.OpGetdents64 {
		ev.Args[2] = 32768
		ev.Files = []event.File{{Open: 1000, Known: true, Dev: 9, Ino: r.ino, Mode: 0o40755, Path: o.a}}
		list := direntsOf(append([]string{".", ".."}, strings.Split(r.list, "/")[1:]...)...)
		if r.list == "" {
			list = direntsOf(".", "..")
		}
		ev.Ret = int64(len(list))
		ev.Bufs = []event.Buf{{Arg: 1, Dir: event.Out, Kind: event.KindStruct, Len: ev.Ret, Inline: list}}
		return ev
	}
	for i, p := range []string{o.a, o.b} {
		if p != "" {
			ev.Paths = append(ev.Paths, event.Path{Arg: int8(i), Raw: p, Abs: p})
		}
	}
	const regular = 0o100644
	file := event.File{Open: o.open, Known: true, Dev: 9, Ino: r.ino, Mode: regular, Size: r.size, Pos: r.pos}
	switch o.op {
	case event.OpOpen:
		ev.Args[1] = o.flags
		if ev.OK() {
			file.Arg, file.FD, file.Flags = event.ResultArg, int32(r.ret), uint32(o.flags&^event.OpenCreat)
			if r.created {
				file.Flags |= event.OpenCreat
			}
			ev.Files = append(ev.Files, file)
		}
	case event.OpStat, event.OpFstat:
		mode := uint32(regular)
		if r.dir {
			mode = 0o40755
		}
		ev.Bufs = append(ev.Bufs, event.Buf{Arg: 1, Dir: event.Out, Kind: event.KindStruct, Inline: statOf(r, mode)})
		if o.op == event.OpFstat {
			ev.Files = append(ev.Files, event.File{Open: o.open})
		}
	case event.OpTruncate:
		ev.Args[1], ev.Offset = uint64(o.off), o.off
	default:
		if o.a != "" {
			break
		}
		if r.append {
			file.Flags |= event.OpenAppend
		}
		ev.Files = append(ev.Files, file)
		switch o.op {
		case event.OpRead, event.OpWrite:
			ev.Args[2], ev.Count, ev.Offset = uint64(o.len), o.len, r.pos-r.ret
		case event.OpPread64, event.OpPwrite64:
			ev.Args[2], ev.Args[3], ev.Count, ev.Offset = uint64(o.len), uint64(o.off), o.len, o.off
		case event.OpFlock:
			ev.Args[1] = o.flags | 4
		case event.OpFtruncate:
			ev.Args[1], ev.Offset = uint64(o.off), o.off
		case event.OpLseek:
			ev.Args[1], ev.Args[2] = uint64(o.off), o.flags
		}
	}
	return ev
}

func direntsOf(names ...string) (b []byte) {
	for i, n := range names {
		e := make([]byte, (19+len(n)+1+7)&^7)
		le := binary.LittleEndian
		le.PutUint64(e, uint64(100+i))
		le.PutUint16(e[16:], uint16(len(e)))
		copy(e[19:], n)
		b = append(b, e...)
	}
	return b
}

func statOf(r answer, mode uint32) []byte {
	b := make([]byte, event.LayoutStat.Bytes(event.AMD64))
	le := binary.LittleEndian
	le.PutUint64(b, 9)
	le.PutUint64(b[8:], r.ino)
	le.PutUint64(b[16:], uint64(r.links))
	le.PutUint32(b[24:], mode)
	le.PutUint64(b[48:], uint64(r.size))
	return b
}

// same says in what two answers to a call differ, as far as a replay would compare them.
func same(o *op, want, got answer) string {
	switch {
	case want.errno != got.errno:
		return fmt.Sprintf("%v, not %v", got.errno, want.errno)
	case want.errno != 0:
		return ""
	case want.ret != got.ret:
		return fmt.Sprintf("returns %d, not %d", got.ret, want.ret)
	case (o.op == event.OpStat || o.op == event.OpFstat) && !want.dir && want.size != got.size:
		return fmt.Sprintf("size %d, not %d", got.size, want.size)
	case (o.op == event.OpStat || o.op == event.OpFstat) && !want.dir && want.links != got.links:
		return fmt.Sprintf("%d links, not %d", got.links, want.links)
	case want.list != got.list:
		return fmt.Sprintf("lists %q, not %q", got.list, want.list)
	}
	return ""
}
