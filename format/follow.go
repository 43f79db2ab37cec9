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
	processes map[uint32]*table
	files     int // in them
}

// table is a table of descriptors.
type table struct {
	Files
	users int // processes
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
	before := len(files.Files)
	if files.Close(c) {
		f.files += len(files.Files) - before
		return
	}
	switch c.Op {
	case event.OpFork, event.OpVfork, event.OpClone, event.OpClone3:
		share := c.Share
		if c.Op == event.OpClone {
			share |= c.Args[0]
		}
		f.Forked(c.PID, uint32(c.Ret), share)
	case event.OpExitGroup:
		if files.users--; files.users == 0 {
			f.files -= len(files.Files)
		}
		delete(f.processes, c.PID)
	default:
		if a := event.Lookup(c.Op).Returns(&c.Args); c.Op != event.OpUnknown && a.Kind == event.KindFD {
			f.set(files, int32(c.Ret), c.returned(files.Files))
		}
	}
}

// Forget says that calls are missing: no position is known any more.
func (f *Followed) Forget() { *f = Followed{} }

func (f *Followed) of(pid uint32) *table {
	files := f.processes[pid]
	if files == nil {
		files = &table{Files{}, 1}
		if f.processes == nil {
			f.processes = map[uint32]*table{}
		}
		f.processes[pid] = files
	}
	return files
}

func (f *Followed) set(files *table, fd int32, file *OpenFile) {
	before := len(files.Files)
	if delete(files.Files, fd); file != nil && fd >= 0 && f.files < maxFollowed {
		files.Files[fd] = file
	}
	f.files += len(files.Files) - before
}

// Forked says that a process made another, with what they share (clone(2)): the child has the files of its maker, or a
// copy of their table. A child often runs before its maker's call returns: who knows of it then says so then. Call does
// it at the return.
func (f *Followed) Forked(maker, child uint32, share uint64) {
	files := f.of(maker)
	switch {
	case share&trace.ShareThread != 0 || child == 0 || child == maker || f.processes[child] != nil:
	case share&trace.ShareFiles != 0:
		f.processes[child] = files
		files.users++
	case f.files+len(files.Files) <= maxFollowed:
		f.processes[child] = &table{maps.Clone(files.Files), 1}
		f.files += len(files.Files)
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
	name := c.text(arg)
	if f := Opened(name, flags); name != "" && f.Regular {
		return f
	}
	return nil
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
