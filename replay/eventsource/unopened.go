// SPDX-License-Identifier: Apache-2.0

package eventsource

import (
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
)

// A replay does not open FIFOs, devices and sockets, and cannot open a file by the handle that it has in
// the recorded file system. Here such calls get names that do the same.

// unopened returns a descriptor's file if a replay does not open it, and it has a name.
func unopened(th *posix.Thread, fd int32) *posix.OpenFile {
	d := th.Table.Lookup(fd)
	if d == nil || d.Open.Gone || d.Open.Now.Given == "" || d.Open.Now.Given[0] != '/' {
		return nil
	}
	switch event.FileType(d.Open.Mode) {
	case event.TypeFIFO, event.TypeChar, event.TypeBlock, event.TypeSocket:
		return d.Open
	}
	return nil
}

// linked gives a linkat of an open FIFO, device or socket its name, instead of the descriptor.
func linked(model *posix.Model, th *posix.Thread, ev *event.Event) {
	if ev.Op != event.OpLinkat || !ev.OK() || len(ev.Paths) == 0 || ev.Paths[0].Arg != 1 || ev.Paths[0].Abs == "" {
		return
	}
	p := &ev.Paths[0]
	fd, rest, ok := posix.DescriptorPath(p.Raw, ev.PID)
	if p.Raw == "" {
		fd, ok = int32(ev.Args[0]), true
	}
	if p.Raw != "" {
		th = model.Meant(th, p.Raw)
	}
	if ok && rest == "" && unopened(th, fd) != nil {
		fromRoot(ev, 4)
		p.Raw = p.Abs
	}
}

// fromRoot makes an event with a directory's descriptor and a name begin at the root directory, and clears its
// flags, which are argument i: none is needed with the name of the file itself.
func fromRoot(ev *event.Event, i int) {
	at := int64(event.AtFDCWD)
	ev.Args[0], ev.Args[i] = uint64(at), 0
	ev.Files = slices.DeleteFunc(ev.Files, func(f event.File) bool { return f.Arg == 0 })
}

// named are the calls that do by name what those with a descriptor do. The arguments behind the descriptor are
// behind the name, unless they stay where they are.
var named = map[event.Op]struct {
	op   event.Op
	stay bool
}{
	event.OpFchmod:       {event.OpFchmodat, false},
	event.OpFchown:       {event.OpFchownat, false},
	event.OpFsetxattr:    {event.OpSetxattr, true},
	event.OpFremovexattr: {event.OpRemovexattr, true},
}

// changed gives a change of an open FIFO's, device's or socket's attributes its name: of its mode, owner, times
// or extended attributes, by descriptor (fchmod, futimens, AT_EMPTY_PATH) or by the magic link of one.
func changed(model *posix.Model, th *posix.Thread, ev *event.Event) {
	switch ev.Effect() {
	case event.EffectChmod, event.EffectChown, event.EffectSetTimes, event.EffectSetXattr, event.EffectRemoveXattr:
	default:
		return
	}
	if !ev.OK() || len(ev.Files) == 0 && len(ev.Paths) == 0 {
		return
	}
	if len(ev.Paths) > 0 && ev.Paths[0].Raw != "" {
		fd, rest, ok := posix.DescriptorPath(ev.Paths[0].Raw, ev.PID)
		if !ok || rest != "" {
			return
		}
		if o := unopened(model.Meant(th, ev.Paths[0].Raw), fd); o != nil {
			ev.Paths[0].Raw, ev.Paths[0].Abs, ev.Paths[0].Real = nameOf(o), nameOf(o), ""
		}
		return
	}
	o := unopened(th, int32(ev.Args[0]))
	if o == nil {
		return
	}
	path := event.Path{Arg: 1, Raw: nameOf(o), Abs: nameOf(o)}
	by, ok := named[ev.Op]
	switch {
	case !ok: // a directory's descriptor and an empty name, or none
		last := len(ev.Spec().Args) - 1
		if ev.Op == event.OpSetxattrat {
			last = 2
		}
		fromRoot(ev, last)
		ev.Args[1] = 1
	case by.stay:
		path.Arg = 0
		ev.Op, ev.Args[0], ev.Files = by.op, 1, ev.Files[:0]
	default:
		at := int64(event.AtFDCWD)
		ev.Op, ev.Args, ev.Files = by.op, [event.MaxArgs]uint64{uint64(at), 1, ev.Args[1], ev.Args[2]}, ev.Files[:0]
	}
	ev.Paths = append(ev.Paths[:0], path)
}

// nameOf returns the name that an open file has now.
func nameOf(o *posix.OpenFile) string {
	if o.Now.Real != "" {
		return o.Now.Real
	}
	return o.Now.Given
}

// byHandle gives an open by handle of a file that has no name any more the magic link of a descriptor
// that is still open: by that, files without a name are opened.
func (s *State) byHandle(model *posix.Model, ev *event.Event) {
	f := ev.FileArg(event.ResultArg)
	if ev.Op != event.OpOpenByHandleAt || !ev.OK() || f == nil || f.Known && f.Nlink > 0 {
		return
	}
	o := model.Nameless(f)
	if o == nil {
		return
	}
	at, opened, flags := int64(event.AtFDCWD), *f, ev.Args[2]
	s.Through[1] = o.ID
	ev.Op, ev.Args = event.OpOpenat, [event.MaxArgs]uint64{uint64(at), 1, flags}
	ev.Files, ev.Bufs = append(ev.Files[:0], opened), ev.Bufs[:0]
	ev.Paths = append(ev.Paths[:0], event.Path{Arg: 1, Raw: "/proc/self/fd/0", Abs: f.Path, Real: f.Real})
}
