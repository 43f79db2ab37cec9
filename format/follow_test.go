// SPDX-License-Identifier: Apache-2.0

package format

import (
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// TestFollowed follows positions through all that shares or copies descriptors.
func TestFollowed(t *testing.T) {
	const pid, child, thread = 100, 200, 300
	const appending = 0o2001
	open := func(pid uint32, name string, flags uint64, fd int64) *Call {
		c := &Call{Op: event.OpOpenat, PID: pid, Ret: fd, Args: [event.MaxArgs]uint64{1: 0, 2: flags}}
		c.Text(1, name, false)
		return c
	}
	call := func(pid uint32, op event.Op, ret int64, args ...uint64) *Call {
		c := &Call{Op: op, PID: pid, Ret: ret}
		copy(c.Args[:], args)
		return c
	}
	none := int64(-1)
	var f Followed
	for i, step := range []struct {
		c    *Call
		want int64 // the position, none if it is not said
	}{
		{call(pid, event.OpRead, 10, 3), none}, // open before the trace
		{open(pid, "/a", 2, 3), none},
		{call(pid, event.OpRead, 10, 3), 10},
		{call(pid, event.OpPread64, 10, 3), none},
		{call(pid, event.OpWrite, 5, 3), 15},
		{call(pid, event.OpLseek, 100, 3, 100), none},
		{call(pid, event.OpReadv, 1, 3), 101},
		{call(pid, event.OpRead, -9, 3), none},
		{call(pid, event.OpDup, 7, 3), none},
		{call(pid, event.OpRead, 9, 7), 110},
		{call(pid, event.OpFork, child), none},
		{call(child, event.OpRead, 10, 3), 120}, // one open file
		{call(child, event.OpClose, 0, 3), none},
		{call(child, event.OpRead, 1, 3), none},
		{call(child, event.OpRead, 1, 7), 121},
		{call(pid, event.OpRead, 1, 3), 122},
		{call(pid, event.OpClone, thread, trace.ShareFiles), none},
		{open(thread, "/b", 0, 4), none},
		{call(pid, event.OpRead, 6, 4), 6},
		{open(pid, "/log", appending, 5), none},
		{call(pid, event.OpWrite, 6, 5), none}, // where the end is, nobody says
		{open(pid, "/dev/tty", 2, 6), none},
		{call(pid, event.OpRead, 6, 6), none},
		{open(pid, "/dir", 0o200000, 8), none},
		{call(pid, event.OpCloseRange, 0, 0, 4), none},
		{call(pid, event.OpRead, 6, 3), none},
		{call(pid, event.OpRead, 1, 7), 123},
		{call(pid, event.OpSocket, 7), none},
		{call(pid, event.OpRead, 6, 7), none},
	} {
		f.Call(step.c)
		got := none
		for _, o := range step.c.Objects {
			got = o.Pos
		}
		if got != step.want {
			t.Errorf("step %d, %s: position %d, want %d", i, event.Lookup(step.c.Op).Name, got, step.want)
		}
	}
	if want := 2; f.files != want { // 5 of the first process, 7 of its child
		t.Errorf("%d descriptors are counted, want %d", f.files, want)
	}
	f.Call(call(pid, event.OpExitGroup, 0))
	if want := 2; f.files != want { // the thread has its descriptors still
		t.Errorf("%d descriptors are counted after an exit, want %d", f.files, want)
	}
	f.Call(call(thread, event.OpExitGroup, 0))
	if want := 1; f.files != want {
		t.Errorf("%d descriptors are counted after two exits, want %d", f.files, want)
	}
	f.Forget()
	c := call(child, event.OpRead, 1, 7)
	if f.Call(c); len(c.Objects) > 0 {
		t.Errorf("after Forget the position is %d, want none", c.Objects[0].Pos)
	}
}
