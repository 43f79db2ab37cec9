// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
)

// at returns the task of a write to an open file.
func at(seq uint64, h *plan.Handle) *plan.Task {
	t := &plan.Task{Event: event.Event{Seq: seq, Op: event.OpWrite}, Op: event.OpWrite}
	t.Files.FDs[0] = h
	return t
}

// A difference on a file is put down to the first one on it, whichever name or descriptor it
// has; one on another file is listed.
func TestDifferencesThatFollow(t *testing.T) {
	rep := result.New()
	called := 0
	c := NewChecker(&Config{Checks: options.CheckAll, Difference: func() { called++ }}, rep)
	a, again, below, b := plan.NewHandle("/d/a"), plan.NewHandle("/d/a"), plan.NewHandle("/d/a/x"),
		plan.NewHandle("/d/b")
	for i, h := range []*plan.Handle{a, a, again, below, b} {
		c.Mismatch(at(uint64(10+i), h), "result", "1", "2")
	}
	if rep.Different != 5 || rep.Following != 3 || called != 5 {
		t.Errorf("%d differences, %d follow, %d calls, want 5, 3 and 5", rep.Different, rep.Following, called)
	}
	if len(rep.Mismatches) != 2 || rep.Mismatches[0].Seq != 10 || rep.Mismatches[1].Seq != 14 {
		t.Fatalf("listed are %+v, want events 10 and 14", rep.Mismatches)
	}
	if got := rep.Mismatches[0].Followers; got != 3 {
		t.Errorf("%d follow from the first, want 3", got)
	}
}

// What the checks leave out is not compared, but a call that succeeds where it failed always
// is.
func TestCallChecks(t *testing.T) {
	outs := &[event.MaxArgs][]byte{}
	for _, tt := range []struct {
		name      string
		checks    options.Checks
		recorded  event.Event
		ret       int64
		errno     syscall.Errno
		different uint64
	}{
		{"the same", options.CheckAll, event.Event{Ret: 3}, 3, 0, 0},
		{"another count", options.CheckAll, event.Event{Ret: 3}, 2, 0, 1},
		{"another count, unchecked", options.CheckData, event.Event{Ret: 3}, 2, 0, 0},
		{"another error", options.CheckAll, event.Event{Ret: -1, Errno: 2}, -1, 13, 1},
		{"another error, unchecked", options.CheckNone, event.Event{Ret: -1, Errno: 2}, -1, 13, 0},
		{"an error", options.CheckNone, event.Event{Ret: 3}, -1, 13, 1},
		{"no error", options.CheckNone, event.Event{Ret: -1, Errno: 2}, 3, 0, 1},
	} {
		rep := result.New()
		task := &plan.Task{Event: tt.recorded, Op: event.OpWrite}
		task.Event.Op = event.OpWrite
		NewChecker(&Config{Checks: tt.checks}, rep).Call(task, tt.ret, tt.errno, outs)
		if rep.Different != tt.different {
			t.Errorf("%s: %d differences, want %d: %+v", tt.name, rep.Different, tt.different, rep.Mismatches)
		}
	}
}
