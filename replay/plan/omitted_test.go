// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
	"github.com/iotape/iotape/replay/order"
)

// A copy into a file of which the recording did not see the bytes leaves other content than it did
// in the recording: that is said. What was left off by choice (--content) is not.
func TestCopyOfUnseenBytesIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		flags event.EventFlags
		want  bool
	}{"not seen": {event.Incomplete, true}, "not kept": {0, false}} {
		s := tapescript.New(t)
		s.Open(3, "f", event.OpenCreat|2)
		to := s.Handle(3)
		to.Arg = 2
		s.Add(event.Event{
			Files: []event.File{to}, Op: event.OpSplice, Args: [6]uint64{4, 0, 3, 0, 100, 0}, Ret: 100, Count: 100,
			Flags: c.flags,
			Bufs:  []event.Buf{{Arg: 0, Dir: event.Out, Kind: event.KindBuf, Len: 100, Missing: 100}},
		})
		tasks := planAll(t, newPlanner(t, s.Close(), &Config{Order: order.Resource}))
		last := tasks[len(tasks)-1]
		if last.Action != CopyIn || last.Omits != c.want {
			t.Errorf("%s: action %d, said %v; want action %d, said %v", name, last.Action, last.Omits, CopyIn, c.want)
		}
	}
}

// A call of which the trace does not say a number is counted as not made, unless a replay makes no such call anyway.
func TestUnsaidNumbersAreSaid(t *testing.T) {
	const second = 1
	for op, want := range map[event.Op]bool{
		event.OpFtruncate: true, event.OpLseek: true,
		event.OpConnect: false, event.OpSetsockopt: false, event.OpExecve: false, event.OpMmap: false,
	} {
		s := tapescript.New(t)
		s.Open(3, "f", event.OpenCreat|2)
		s.Add(event.Event{
			Files: []event.File{s.Handle(3)}, Op: op, Args: [6]uint64{3}, Flags: event.UnknownArg << second,
		})
		tasks := planAll(t, newPlanner(t, s.Close(), &Config{Order: order.Resource}))
		if last := tasks[len(tasks)-1]; last.Omits != want {
			t.Errorf("%s: said %v, want %v", op, last.Omits, want)
		}
	}
}

// A hole that a program made in a file through a mapping (MADV_REMOVE) is said, also by a process that has the mapping
// from its parent. Holes in other memory, and other advice, are not.
func TestHolesByMappingsAreSaid(t *testing.T) {
	const at, shared, private, remove, dontNeed = 0x7f0000000000, 1, 2, 9, 4
	for name, c := range map[string]struct {
		kind, address, advice uint64
		replaced, forked      bool
		want                  bool
	}{
		"shared":       {kind: shared, address: at + 4096, advice: remove, want: true},
		"forked":       {kind: shared, address: at + 4096, advice: remove, forked: true, want: true},
		"private":      {kind: private, address: at, advice: remove},
		"beside":       {kind: shared, address: at + 16384, advice: remove},
		"other advice": {kind: shared, address: at, advice: dontNeed},
		"replaced":     {kind: shared, address: at, advice: remove, replaced: true},
	} {
		s := tapescript.New(t)
		s.Open(3, "f", event.OpenCreat|2)
		file := s.Handle(3)
		file.Arg, file.Nlink, file.Flags = 4, 1, syscall.O_RDWR
		args := [6]uint64{0, 16384, 3, c.kind, 3}
		s.Add(event.Event{Files: []event.File{file}, Op: event.OpMmap, Args: args, Ret: at})
		if c.replaced {
			s.Call(event.OpMmap, at, 0, [6]uint64{0, 16384, 3, 0x21, ^uint64(0)})
		}
		hole := event.Event{Op: event.OpMadvise, Args: [6]uint64{c.address, 4096, c.advice}}
		if c.forked {
			hole.PID, hole.TID = 77, 77
		}
		s.Add(hole)
		tasks := planAll(t, newPlanner(t, s.Close(), &Config{Order: order.Resource}))
		if last := tasks[len(tasks)-1]; last.Omits != c.want || c.want && last.Why != whyHole {
			t.Errorf("%s: said %v (%s), want %v", name, last.Omits, last.Why, c.want)
		}
	}
}
