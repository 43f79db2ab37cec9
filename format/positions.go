// SPDX-License-Identifier: Apache-2.0

package format

import (
	"math"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// OpenFile is what an importer knows of an open file, which descriptors share.
type OpenFile struct {
	Name    string // as the trace says it, "" if it does not
	Pos     int64  // bytes; -1: not known
	Flags   uint32 // of open(2): the access mode and O_APPEND
	Regular bool   // nothing says that it is no regular file
}

// Files are the open files of a process, by descriptor.
type Files map[int32]*OpenFile

// Open flags (fcntl.h).
const (
	appends    = 0o2000
	accessMode = 3
	directory  = 0o200000
)

// Opened returns a file that a call opened with flags, at its beginning. It is a regular one unless the flags or the
// name say otherwise.
func Opened(name string, flags uint64) *OpenFile {
	virtual := strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/sys/")
	f := &OpenFile{Name: name, Flags: uint32(flags & (accessMode | appends))}
	f.Regular = !virtual && flags&directory == 0
	return f
}

// Close follows calls that close descriptors, and reports whether a call, which succeeded, is one of these.
func (t Files) Close(c *Call) bool {
	switch c.Op {
	case event.OpClose:
		delete(t, int32(c.Args[0]))
	case event.OpCloseRange:
		const cloexec = 4 // CLOSE_RANGE_CLOEXEC (linux/close_range.h)
		for fd := range t {
			if c.Args[2]&cloexec == 0 && uint64(fd) >= c.Args[0] && uint64(fd) <= c.Args[1] {
				delete(t, fd)
			}
		}
	default:
		return false
	}
	return true
}

// Position adds to a call what a recording would say of its files: where the positions are
// when the call returns. A foreign trace does not say it, but it follows from the calls
// before.
func (t Files) Position(c *Call) {
	if c.Ret < 0 || c.Interrupted {
		return
	}
	switch c.Op {
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev:
		f := t[int32(c.Args[0])]
		if f == nil || !f.Regular {
			return
		}
		if f.advance(c.Ret, c.Op == event.OpWrite || c.Op == event.OpWritev); f.Pos >= 0 {
			c.Objects = append(c.Objects, f.object(int32(c.Args[0]), 0))
		}
	case event.OpSendfile:
		t.transfer(c, 1, 2, 0, -1)
	case event.OpCopyFileRange, event.OpSplice:
		t.transfer(c, 0, 1, 2, 3)
	case event.OpLseek:
		if f := t[int32(c.Args[0])]; f != nil {
			f.Pos = c.Ret
		}
	}
}

// transfer follows a call that moves bytes from one file to another. Where an argument
// gives the offset, the position stays.
func (t Files) transfer(c *Call, from, fromOff, to, toOff int) {
	for _, end := range [...]struct {
		fd, off int
		write   bool
	}{{from, fromOff, false}, {to, toOff, true}} {
		f := t[int32(c.Args[end.fd])]
		if f == nil || !f.Regular || end.off >= 0 && c.Args[end.off] != 0 {
			continue
		}
		if f.advance(c.Ret, end.write); f.Pos >= 0 {
			c.Objects = append(c.Objects, f.object(int32(c.Args[end.fd]), int8(end.fd)))
		}
	}
}

// advance moves the position; that of an append is the file's end, which is not known.
func (f *OpenFile) advance(n int64, write bool) {
	switch {
	case f.Pos < 0:
	case write && f.Flags&appends != 0:
		f.Pos = -1
	case f.Pos <= math.MaxInt64-n:
		f.Pos += n
	}
}

func (f *OpenFile) object(fd int32, arg int8) trace.Object {
	const regular = 0o100000
	return trace.Object{FD: fd, Arg: arg, Mode: regular, Pos: f.Pos, Flags: f.Flags}
}
