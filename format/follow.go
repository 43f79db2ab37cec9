// SPDX-License-Identifier: Apache-2.0

package format

import (
	"maps"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Followed are the open files of all processes of a trace that says of a call no more than its arguments and its
// result. The zero value is ready.
type Followed struct {
	processes map[uint32]Files
	files     int // in them
}

// maxFollowed limits the descriptors that a hostile trace can have followed. What is beyond them is not known.
const maxFollowed = 1 << 20

// Call adds to a call the positions of its files, as they follow from the calls before, and follows what it does to the
// descriptors of its process. Calls come in the order of their ends.
func (f *Followed) Call(c *Call) {
	if c.Ret < 0 || c.Interrupted {
		return
	}
	files := f.of(c.PID)
	if len(c.Objects) == 0 {
		files.Position(c)
	}
	switch c.Op {
	case event.OpClose:
		f.remove(files, int32(c.Args[0]))
	case event.OpCloseRange:
		const cloexec = 4 // CLOSE_RANGE_CLOEXEC (linux/close_range.h)
		for fd := range files {
			if c.Args[2]&cloexec == 0 && uint64(fd) >= c.Args[0] && uint64(fd) <= c.Args[1] {
				f.remove(files, fd)
			}
		}
	case event.OpFork, event.OpVfork, event.OpClone, event.OpClone3:
		f.fork(files, c)
	case event.OpExitGroup:
		delete(f.processes, c.PID) // its files count on, as others can share them
	default:
		if a := event.Lookup(c.Op).Returns(&c.Args); c.Op != event.OpUnknown && a.Kind == event.KindFD {
			f.set(files, int32(c.Ret), c.returned(files))
		}
	}
}

// Forget says that calls are missing: no position is known any more.
func (f *Followed) Forget() { *f = Followed{} }

func (f *Followed) of(pid uint32) Files {
	files := f.processes[pid]
	if files == nil {
		files = Files{}
		if f.processes == nil {
			f.processes = map[uint32]Files{}
		}
		f.processes[pid] = files
	}
	return files
}

func (f *Followed) set(files Files, fd int32, file *OpenFile) {
	f.remove(files, fd)
	if file != nil && fd >= 0 && f.files < maxFollowed {
		files[fd] = file
		f.files++
	}
}

func (f *Followed) remove(files Files, fd int32) {
	if files[fd] != nil {
		delete(files, fd)
		f.files--
	}
}

// fork gives a child its maker's files, or a copy of their table.
func (f *Followed) fork(files Files, c *Call) {
	share, child := c.Share, uint32(c.Ret)
	if c.Op == event.OpClone {
		share |= c.Args[0]
	}
	switch {
	case share&trace.ShareThread != 0 || child == 0 || child == c.PID:
	case share&trace.ShareFiles != 0:
		f.of(child)
		f.processes[child] = files
	case f.files+len(files) <= maxFollowed:
		f.processes[child] = maps.Clone(files)
		f.files += len(files)
	}
}

// returned is the file of the descriptor that a call returned, nil if it is none that has a position.
func (c *Call) returned(files Files) *OpenFile {
	switch c.Op {
	case event.OpOpen:
		return c.opened(0, c.Args[1])
	case event.OpOpenat:
		return c.opened(1, c.Args[2])
	case event.OpCreat:
		const writeOnly = 1
		return c.opened(0, writeOnly)
	case event.OpDup, event.OpDup2, event.OpDup3, event.OpFcntl:
		return files[int32(c.Args[0])]
	}
	return nil
}

// opened is the file that was opened by the name in an argument, nil if it is no regular one, or no name is known.
func (c *Call) opened(arg int, flags uint64) *OpenFile {
	const directory, pathOnly = 0o200000, 0o10000000 // O_DIRECTORY, O_PATH (fcntl.h)
	name := c.text(arg)
	if flags&(directory|pathOnly) != 0 || name == "" || strings.HasPrefix(name, "/dev/") ||
		strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/sys/") {
		return nil
	}
	return Opened(name, flags)
}

// text is what the trace says of the text of an argument.
func (c *Call) text(arg int) string {
	for _, p := range c.pieces {
		if int(p.Arg) == arg && p.Off == 0 {
			return strings.TrimRight(string(p.Data), "\x00")
		}
	}
	return ""
}
