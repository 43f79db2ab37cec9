// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"math"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// openFile is what is known of an open file, which descriptors share.
type openFile struct {
	name    string // as -y says it, "" if it does not
	pos     int64  // -1: not known
	flags   uint32
	regular bool // opened by name, and nothing says that it is no regular file
}

// Open flags (fcntl.h).
const (
	oAppend    = 0o2000
	oDirectory = 0o200000
	accessMode = 3
)

// set makes a descriptor stand for a file.
func (p *process) set(fd int64, f *openFile) {
	if fd >= 0 && fd <= math.MaxInt32 && len(p.fds) < maxFDs {
		p.fds[int32(fd)] = f
	}
}

// position adds to a call what a recording would say of its file: where the position is
// when the call returns. strace does not say it, but it follows from the calls before.
func (x *importer) position(p *process, c *format.Call) {
	if c.Ret < 0 || c.Interrupted {
		return
	}
	switch c.Op {
	case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev:
		f := p.fds[int32(c.Args[0])]
		if f == nil || !f.regular {
			return
		}
		if f.advance(c.Ret, c.Op == event.OpWrite || c.Op == event.OpWritev); f.pos >= 0 {
			c.Objects = append(c.Objects, f.object(int32(c.Args[0]), 0))
		}
	case event.OpSendfile:
		x.transfer(p, c, 1, 2, 0, -1)
	case event.OpCopyFileRange, event.OpSplice:
		x.transfer(p, c, 0, 1, 2, 3)
	case event.OpLseek:
		if f := p.fds[int32(c.Args[0])]; f != nil {
			f.pos = c.Ret
		}
	}
}

// transfer follows a call that moves bytes from one file to another. Where an argument
// gives the offset, the position stays.
func (x *importer) transfer(p *process, c *format.Call, from, fromOff, to, toOff int) {
	for _, end := range [...]struct {
		fd, off int
		write   bool
	}{{from, fromOff, false}, {to, toOff, true}} {
		f := p.fds[int32(c.Args[end.fd])]
		if f == nil || !f.regular || end.off >= 0 && c.Args[end.off] != 0 {
			continue
		}
		if f.advance(c.Ret, end.write); f.pos >= 0 {
			c.Objects = append(c.Objects, f.object(int32(c.Args[end.fd]), int8(end.fd)))
		}
	}
}

// advance moves the position; that of an append is the file's end, which is not known.
func (f *openFile) advance(n int64, write bool) {
	switch {
	case f.pos < 0:
	case write && f.flags&oAppend != 0:
		f.pos = -1
	case f.pos <= math.MaxInt64-n:
		f.pos += n
	}
}

func (f *openFile) object(fd int32, arg int8) trace.Object {
	const regular = 0o100000
	return trace.Object{FD: fd, Arg: arg, Mode: regular, Pos: f.pos, Flags: f.flags}
}

// descriptors follows what a call that succeeded did to the descriptors of its process.
func (x *importer) descriptors(p *process, c *format.Call, r *result, args []*field) {
	switch c.Op {
	case event.OpClose:
		delete(p.fds, int32(c.Args[0]))
		return
	case event.OpCloseRange:
		for fd := range p.fds {
			if c.Args[2] == 0 && uint64(fd) >= c.Args[0] && uint64(fd) <= c.Args[1] {
				delete(p.fds, fd)
			}
		}
		return
	case event.OpPipe, event.OpPipe2, event.OpSocketpair, event.OpRecvmsg, event.OpRecvmmsg:
		for i := range c.Objects {
			switch o := &c.Objects[i]; {
			case o.Arg != event.MemoryArg:
			case o.Mode != 0:
				p.set(int64(o.FD), &openFile{pos: -1})
			default: // a file that was sent: its name is told when it is used
				delete(p.fds, o.FD)
			}
		}
		return
	case event.OpFstat, event.OpNewfstatat:
		x.told(p, c, args)
		return
	}
	spec := event.Lookup(c.Op)
	if a := spec.Returns(&c.Args); a.Kind != event.KindFD || c.Op == event.OpUnknown {
		return
	}
	f := p.returned(c, r, args)
	if spec.Class == event.Descriptor {
		p.opens = true
	}
	p.set(c.Ret, f)
}

// returned returns the file of the descriptor that a call returned.
func (p *process) returned(c *format.Call, r *result, args []*field) *openFile {
	f := &openFile{name: strings.Clone(r.note), pos: -1}
	switch c.Op {
	case event.OpOpen:
		f.opened(c.Args[1], args, 0)
	case event.OpOpenat:
		f.opened(c.Args[2], args, 1)
	case event.OpOpenat2:
		f.opened(0, args, 1)
	case event.OpCreat:
		f.opened(1, args, 0)
	case event.OpDup, event.OpDup2, event.OpDup3, event.OpFcntl:
		if old := p.fds[int32(c.Args[0])]; old != nil {
			return old
		}
	}
	return f
}

// opened says how a file was opened, by the name in argument i.
func (f *openFile) opened(flags uint64, args []*field, i int) {
	f.pos, f.flags = 0, uint32(flags&(accessMode|oAppend))
	name := unescape(f.name)
	if i < len(args) && args[i] != nil && name == "" {
		name = string(args[i].Data)
	}
	device := strings.HasSuffix(f.name, ">") || strings.HasPrefix(name, "/dev/") ||
		strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/sys/")
	f.regular = flags&oDirectory == 0 && !device
}

// told learns from what stat says of a descriptor which kind of file it is.
func (x *importer) told(p *process, c *format.Call, args []*field) {
	buf := 1
	if c.Op == event.OpNewfstatat {
		if buf = 2; args[1] == nil || len(args[1].Data) > 0 {
			return
		}
	}
	f := p.fds[int32(c.Args[0])]
	if f == nil || buf >= len(args) || args[buf] == nil {
		return
	}
	for i := range args[buf].Parts {
		if s := &args[buf].Parts[i]; s.Name == "st_mode" && !strings.HasPrefix(s.Text, "S_IFREG") &&
			!strings.HasPrefix(s.Text, "0100") {
			f.regular = false
		}
	}
}
