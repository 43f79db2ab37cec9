// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
)

func TestPhases(t *testing.T) {
	note := func(seq uint64, at int64, text string) *event.Event {
		e := &event.Event{Seq: seq, Exit: at}
		e.SetNote(text)
		return e
	}
	call := func(seq uint64, op event.Op, enter, exit, ret int64) *event.Event {
		return &event.Event{Seq: seq, Op: op, Enter: enter, Exit: exit, Ret: ret, Count: ret}
	}
	failed := call(5, event.OpWrite, 60, 70, -1)
	failed.Errno = syscall.ENOSPC
	events := []*event.Event{
		call(0, event.OpRead, 10, 20, 100), note(1, 30, "load"), call(2, event.OpWrite, 35, 45, 7),
		call(3, event.OpFsync, 45, 50, 0), note(4, 55, "check"), failed,
		{Seq: 6, Kind: event.LossMark, Enter: 80, Exit: 80, Ret: 3},
	}
	iter := func(yield func(*event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		yield(nil, errors.New("damaged"))
	}
	type phase struct {
		note                                     string
		start, took                              int64
		calls, errors, read, written, sync, lost uint64
	}
	sum := func(r *report.Phases) (got []phase) {
		for _, p := range r.Phases {
			got = append(got, phase{p.Note, p.StartNS, p.TookNS, p.Calls, p.Errors, p.ReadBytes,
				p.WrittenBytes, p.Syncs, p.Lost})
		}
		return got
	}
	r := report.CollectPhases(iter, nil, &report.Options{})
	want := []phase{
		{"", 0, 20, 1, 0, 100, 0, 0, 0},
		{"load", 20, 25, 2, 0, 0, 7, 1, 0},
		{"check", 45, 25, 1, 1, 0, 0, 0, 3},
	}
	if got := sum(r); !slices.Equal(got, want) || r.Damaged != 1 {
		t.Errorf("phases\n%v, %d damaged, want\n%v, 1 damaged", got, r.Damaged, want)
	}
	r = report.CollectPhases(iter, func(e *event.Event) bool { return e.Op == event.OpFsync }, &report.Options{})
	if got := sum(r); len(got) != 3 || got[0].calls != 0 || got[1].calls != 1 || got[2].calls != 0 {
		t.Errorf("phases of fsync alone: %v, want 0, 1 and 0 calls", got)
	}
}
