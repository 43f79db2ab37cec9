// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"math"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
)

// set makes a descriptor stand for a file.
func (p *process) set(fd int64, f *format.OpenFile) {
	if fd >= 0 && fd <= math.MaxInt32 && len(p.fds) < maxFDs {
		p.fds[int32(fd)] = f
	}
}

// descriptors follows what a call that succeeded did to the descriptors of its process.
func (x *importer) descriptors(p *process, c *format.Call, r *result, args []*field) {
	if p.fds.Close(c) {
		return
	}
	switch c.Op {
	case event.OpPipe, event.OpPipe2, event.OpSocketpair, event.OpRecvmsg, event.OpRecvmmsg, event.OpSendmsg,
		event.OpSendmmsg:
		x.inMemory(p, c)
		return
	case event.OpFstat, event.OpNewfstatat:
		x.told(p, c, args)
		return
	case event.OpNameToHandleAt:
		if h := handleOf(args, 2); h != "" && len(x.handles) < maxHandles {
			x.handles[h] = true
		}
		return
	case event.OpOpenByHandleAt:
		if x.handles[handleOf(args, 1)] {
			p.set(c.Ret, &format.OpenFile{Pos: -1})
		} else { // the name is told when the file is used
			delete(p.fds, int32(c.Ret))
		}
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

// inMemory follows the descriptors in the memory of a call: those of a pair, and those that a message carries.
func (x *importer) inMemory(p *process, c *format.Call) {
	sends := c.Op == event.OpSendmsg || c.Op == event.OpSendmmsg
	receives := c.Op == event.OpRecvmsg || c.Op == event.OpRecvmmsg
	for i := range c.Objects {
		switch o := &c.Objects[i]; {
		case o.Arg != event.MemoryArg:
		case sends:
			if f := p.fds[o.FD]; f != nil && len(x.flights) < maxFlights {
				x.flights = append(x.flights, f)
			}
		case receives && len(x.flights) > 0:
			p.set(int64(o.FD), x.flights[0])
			x.flights = x.flights[1:]
		case o.Mode != 0:
			p.set(int64(o.FD), &format.OpenFile{Pos: -1})
		default: // a file that was sent: its name is told when it is used
			delete(p.fds, o.FD)
		}
	}
}

// maxFlights limits the files in messages that nobody received.
const maxFlights = 4096

// maxHandles limits the handles whose files are known.
const maxHandles = 1 << 14

// handleOf returns the bytes of the file handle that argument i tells, as text; "" if it tells none.
func handleOf(args []*field, i int) string {
	if i >= len(args) || args[i] == nil {
		return ""
	}
	for j := range args[i].Parts {
		if p := &args[i].Parts[j]; p.Name == "f_handle" {
			return string(p.Data) + p.Text
		}
	}
	return ""
}

// returned returns the file of the descriptor that a call returned.
func (p *process) returned(c *format.Call, r *result, args []*field) *format.OpenFile {
	name := strings.Clone(r.note)
	switch c.Op {
	case event.OpOpen:
		return opened(name, c.Args[1], args, 0)
	case event.OpOpenat:
		return opened(name, c.Args[2], args, 1)
	case event.OpOpenat2:
		return opened(name, 0, args, 1)
	case event.OpCreat:
		return opened(name, 1, args, 0)
	case event.OpDup, event.OpDup2, event.OpDup3, event.OpFcntl:
		if old := p.fds[int32(c.Args[0])]; old != nil {
			return old
		}
	}
	return &format.OpenFile{Name: name, Pos: -1}
}

// opened returns a file that was opened by the name in argument i. note is what the trace says
// of its descriptor.
func opened(note string, flags uint64, args []*field, i int) *format.OpenFile {
	name := unescape(note)
	if i < len(args) && args[i] != nil && name == "" {
		name = string(args[i].Data)
	}
	f := format.Opened(name, flags)
	f.Name, f.Regular = note, f.Regular && !strings.HasSuffix(note, ">") // a device
	return f
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
			f.Regular = false
		}
	}
}
