// SPDX-License-Identifier: Apache-2.0

package fsusage

import (
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// Limits of what a hostile file can make the importer hold.
const (
	maxThreads = 1 << 16
	maxFiles   = 1 << 18
)

// What is left out, by the names that a user sees.
const (
	others   = "events without a like call of Linux: "
	crowd    = "calls of threads beyond the first 65,536"
	pathless = "calls of which the text has no name"
)

type importer struct {
	w         *format.Writer
	im        *format.Import
	threads   map[uint32]string // their commands
	byName    map[string]uint32 // numbers of commands without a thread's
	files     map[key]string    // what descriptors stand for
	last, day uint64
	latest    uint64 // time of the last line
}

// key is a descriptor. Threads count as processes, because the text does not say which share one.
type key struct {
	comm string
	fd   int32
}

// kind is how a call is made of a line.
type kind struct {
	op   event.Op
	fd   bool // it is about F
	path bool // it is about a name
}

// calls are the like calls of Linux; _nocancel and 64 behind a name are cut off.
var calls = map[string]kind{
	"open": {event.OpOpen, false, true}, "open_extended": {event.OpOpen, false, true},
	"guarded_open_np": {event.OpOpen, false, true}, "close": {event.OpClose, true, false},
	"guarded_close_np": {event.OpClose, true, false}, "read": {event.OpRead, true, false},
	"write": {event.OpWrite, true, false}, "pread": {event.OpPread64, true, false},
	"pwrite": {event.OpPwrite64, true, false}, "lseek": {event.OpLseek, true, false},
	"fsync": {event.OpFsync, true, false}, "ftruncate": {event.OpFtruncate, true, false},
	"truncate": {event.OpTruncate, false, true}, "fstat": {event.OpFstat, true, false},
	"stat": {event.OpStat, false, true}, "stat_extended": {event.OpStat, false, true},
	"lstat": {event.OpLstat, false, true}, "access": {event.OpAccess, false, true},
	"unlink": {event.OpUnlink, false, true}, "mkdir": {event.OpMkdir, false, true},
	"rmdir": {event.OpRmdir, false, true}, "chmod": {event.OpChmod, false, true},
	"chown": {event.OpChown, false, true}, "readlink": {event.OpReadlink, false, true},
	"chdir": {event.OpChdir, false, true}, "statfs": {event.OpStatfs, false, true},
	"fstatfs": {event.OpFstatfs, true, false}, "fcntl": {event.OpFcntl, true, false},
	"ioctl": {event.OpIoctl, true, false}, "getdirentries": {event.OpGetdents64, true, false},
}

func (x *importer) line(l *line) error {
	const day = 24 * 3600e9
	if l.end+day/2 < x.last { // it is past midnight
		x.day += day
	}
	x.last = l.end
	const base = 1e9 // so that what began before the first line has a time
	end := l.end + x.day + base
	if l.coarse { // lines keep their order
		end = max(end, x.latest+1000)
	}
	x.latest = end
	name := strings.TrimSuffix(strings.TrimSuffix(l.call, "_nocancel"), "64")
	k, ok := calls[name]
	if !ok {
		x.im.LeftOut(others+l.call, 1)
		return nil
	}
	if k.path && l.path == "" {
		x.im.LeftOut(pathless, 1)
		return nil
	}
	tid, ok := x.thread(l)
	if !ok {
		x.im.LeftOut(crowd, 1)
		return nil
	}
	c := &format.Call{Op: k.op, PID: tid, TID: tid, Enter: end - min(l.took, end-1), Exit: end}
	if x.threads[tid] != l.comm {
		x.threads[tid] = strings.Clone(l.comm)
		if err := x.w.Task(&format.Task{PID: tid, TID: tid, Comm: l.comm}, c.Enter); err != nil {
			return err
		}
	}
	x.im.Records++
	spec := event.Lookup(k.op)
	for i := range spec.Args {
		if a := &spec.Args[i]; !a.Kind.IsMemory() {
			c.NotKnown(i)
		} else if a.Kind == event.KindPath && i == 0 {
			c.Text(i, l.path, false)
		}
	}
	x.result(c, l, spec)
	x.flags(c, l)
	if k.fd {
		if err := x.descriptor(c, l); err != nil {
			return err
		}
	}
	c.Moved(spec)
	return x.w.Call(c)
}

// thread returns the number of a line's thread; that of a command if there is none.
func (x *importer) thread(l *line) (tid uint32, ok bool) {
	if tid = l.tid; tid == 0 {
		if tid = x.byName[l.comm]; tid == 0 && len(x.byName) < maxThreads {
			tid = 1<<30 + uint32(len(x.byName))
			x.byName[strings.Clone(l.comm)] = tid
		}
	}
	_, known := x.threads[tid]
	return tid, tid != 0 && (known || len(x.threads) < maxThreads)
}

// result takes what the call returned: bytes of reads and writes, the descriptor of opens, the errno.
func (x *importer) result(c *format.Call, l *line, spec *event.Spec) {
	n, sized := l.number("B")
	at, placed := l.number("O")
	fd, numbered := l.number("F")
	switch {
	case l.errno != 0:
		c.Ret = -int64(errno(l.errno))
	case spec.Result == event.KindFD:
		c.Ret, c.Interrupted = int64(int32(fd)), !numbered
	case spec.Result == event.KindSize && spec.Class == event.Data:
		c.Ret, c.Interrupted = int64(min(n, 1<<40)), !sized
	case c.Op == event.OpLseek:
		c.Ret, c.Interrupted = int64(at), !placed
	}
	switch c.Op {
	case event.OpPread64, event.OpPwrite64:
		if placed {
			c.Args[3] = at
			c.Known(3)
		}
		fallthrough
	case event.OpRead, event.OpWrite:
		if sized && l.errno == 0 { // at least
			c.Args[2] = min(n, 1<<40)
			c.Known(2)
		}
	}
}

// flags reads what fs_usage shows of an open's flags: (RWCTAE) without what is not set.
func (x *importer) flags(c *format.Call, l *line) {
	if c.Op != event.OpOpen || l.access == "" || l.access[0] != '(' {
		return
	}
	flags := uint64(syscall.O_RDONLY)
	switch r, w := strings.Contains(l.access, "R"), strings.Contains(l.access, "W"); {
	case r && w:
		flags = syscall.O_RDWR
	case w:
		flags = syscall.O_WRONLY
	}
	for letter, f := range map[string]uint64{
		"C": syscall.O_CREAT, "A": syscall.O_APPEND, "T": syscall.O_TRUNC, "E": syscall.O_EXCL,
	} {
		if strings.Contains(l.access, letter) {
			flags |= f
		}
	}
	c.Args[1] = flags
	c.Known(1)
}

// descriptor takes the file that a call is about. Of one that was open before, the name is not known.
func (x *importer) descriptor(c *format.Call, l *line) error {
	fd, ok := l.number("F")
	if !ok {
		return nil
	}
	c.Args[0] = uint64(int64(int32(fd)))
	c.Known(0)
	k := key{l.comm, int32(fd)}
	if _, known := x.files[k]; known || l.errno != 0 || l.path == "" || len(x.files) >= maxFiles {
		return nil
	}
	k.comm = strings.Clone(k.comm)
	x.files[k] = strings.Clone(l.path)
	return x.w.Open(c.PID, trace.Object{FD: int32(fd)}, l.path, c.Enter)
}

// errno returns Linux's number of an error of macOS (sys/errno.h); those up to 34 are the same, but for EAGAIN.
func errno(n int) syscall.Errno {
	if other, ok := errnos[n]; ok {
		return other
	}
	if n < 1 || n > 34 {
		return syscall.EIO
	}
	return syscall.Errno(n)
}

var errnos = map[int]syscall.Errno{11: syscall.EDEADLK, 35: syscall.EAGAIN, 45: syscall.EOPNOTSUPP, 62: syscall.ELOOP,
	63: syscall.ENAMETOOLONG, 66: syscall.ENOTEMPTY, 69: syscall.EDQUOT, 70: syscall.ESTALE, 78: syscall.ENOSYS,
	93: syscall.ENODATA}
