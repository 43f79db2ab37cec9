// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/content"
)

// shortCallNS is what a call took at most that is expected to be short again.
const shortCallNS = 50_000

// ordinary reports whether an event's flags leave its call what most are: it was made and
// came back, and the tape has all that it gave. Flags that are not named here say something
// of how it was measured, and make no difference to what is done.
func ordinary(f event.EventFlags) bool {
	return f&(event.Interrupted|event.Incomplete|event.Late|event.Compat|event.Synthetic) == 0
}

// maxPlainBytes bounds what a plain read or write moves; larger ones are tasks.
const maxPlainBytes = 1 << 20

// planPlain makes a step of a read or write of one buffer that succeeded, if it is no more
// than that.
func (p *Planner) planPlain(t *Task) bool {
	ev, s := &t.Event, &t.Step
	switch ev.Op {
	case event.OpPread64, event.OpPwrite64:
		s.HasOffset, s.Offset = true, int64(ev.Args[3])
	case event.OpRead, event.OpWrite:
	default:
		return false
	}
	if p.native.Requests && t.IsRequest() || !succeeded(t) || !ofPlainFile(ev) {
		return false
	}
	h := p.handles[ev.Files[0].Open]
	if h == nil {
		return false
	}
	s.Kind = StepRead
	if ev.Effect() == event.EffectWrite {
		s.Kind = StepWrite
	}
	t.Action = MakeCall
	s.Handle, s.Number = h, uint16(NativeNumber(ev.Op))
	s.Count, s.Ret, s.Seq = uint32(ev.Args[2]), ev.Ret, ev.Seq
	s.TID, s.Op, s.Short = t.TID, ev.Op, ev.Exit-ev.Enter < shortCallNS
	return true
}

// succeeded reports whether a read or write is a call that is known to have succeeded, and
// that ends nothing.
func succeeded(t *Task) bool {
	ev := &t.Event
	return ev.Kind == event.Call && ev.Errno == 0 && ev.Ret >= 0 && ordinary(ev.Flags) &&
		t.Unexplained == 0 && len(t.Released) == 0
}

// ofPlainFile reports whether a read or write has one buffer, of whose content the tape has
// all or nothing, and an ordinary file.
func ofPlainFile(ev *event.Event) bool {
	if len(ev.Files) == 0 || ev.Args[1] == 0 || ev.Args[2] > maxPlainBytes {
		return false
	}
	f := &ev.Files[0]
	if f.Arg != 0 || !f.Known || f.Flags&unix.O_DIRECT != 0 || f.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		return false
	}
	return len(ev.Bufs) == 0 || len(ev.Bufs) == 1 && content.WholeOrNone(&ev.Bufs[0])
}

// NativeNumber returns a call's number on the machine that replays, -1 if it has none.
func NativeNumber(op event.Op) int {
	a, ok := event.ParseArch(runtime.GOARCH)
	if !ok {
		return -1
	}
	switch op { // through the file, which has the same content
	case event.OpMmapPread:
		op = event.OpPread64
	case event.OpMmapPwrite:
		op = event.OpPwrite64
	}
	return event.Number(a, op)
}
