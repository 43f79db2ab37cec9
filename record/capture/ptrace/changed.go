// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
)

// atPosition is the offset of what a call wrote at its file's position.
const atPosition = -1

// changedBy is told of a call that has returned: what it wrote, cut off or moved is not as it was looked at.
func (s *stores) changedBy(th *thread, ret int64) {
	c := &th.call
	switch c.spec.Op {
	case event.OpWrite, event.OpWritev, event.OpSendfile:
		s.doubt(th, int32(c.args[0]), atPosition, ret)
	case event.OpPwrite64, event.OpPwritev, event.OpPwritev2:
		s.doubt(th, int32(c.args[0]), int64(c.args[3]), ret)
	case event.OpCopyFileRange, event.OpSplice:
		off := int64(atPosition)
		if c.args[3] != 0 { // it was moved by what was written
			off = int64(s.r.number(th, c.args[3], 8)) - ret
		}
		s.doubt(th, int32(c.args[2]), off, ret)
	case event.OpFtruncate:
		s.doubt(th, int32(c.args[0]), int64(c.args[1]), allOfFile)
	case event.OpTruncate:
		for _, f := range s.files {
			f.pages.Doubt(int64(c.args[1]), allOfFile)
		}
	case event.OpCreat:
		s.doubt(th, int32(ret), 0, allOfFile)
	case event.OpOpen:
		s.opened(th, ret, c.args[1])
	case event.OpOpenat:
		s.opened(th, ret, c.args[2])
	case event.OpOpenat2:
		s.opened(th, ret, s.r.number(th, c.args[2], 8))
	case event.OpFallocate:
		s.allocated(th)
	case event.OpIoctl:
		if event.Clones(c.args[1]) && uint32(c.args[1]) != event.FiDedupeRange {
			s.doubt(th, int32(c.args[0]), 0, allOfFile)
		}
	}
}

func (s *stores) opened(th *thread, fd int64, flags uint64) {
	if flags&unix.O_TRUNC != 0 {
		s.doubt(th, int32(fd), 0, allOfFile)
	}
}

// allocated is told of a fallocate.
func (s *stores) allocated(th *thread) {
	mode, off, n := th.call.args[1], int64(th.call.args[2]), int64(th.call.args[3])
	f, _ := s.of(th, int32(th.call.args[0]))
	switch {
	case f == nil:
	case mode&unix.FALLOC_FL_COLLAPSE_RANGE != 0:
		f.pages.Shift(off, -n)
	case mode&unix.FALLOC_FL_INSERT_RANGE != 0:
		f.pages.Shift(off, n)
	case mode&(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_ZERO_RANGE) != 0:
		f.pages.Doubt(off, off+n)
	}
}

// doubt is told that a call changed n bytes at off of the file of a descriptor, or those before its position.
func (s *stores) doubt(th *thread, fd int32, off, n int64) {
	f, o := s.of(th, fd)
	if f == nil {
		return
	}
	switch {
	case off == atPosition:
		off = max(o.Pos-n, 0)
	case o.Flags&unix.O_APPEND != 0 && n < allOfFile:
		off = min(off, max(o.Size-n, 0)) // where pwrite writes, whatever it is told
		n = allOfFile - off
	}
	f.pages.Doubt(off, off+min(n, allOfFile-off))
}
