// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
)

// TestUntimed: a call whose duration is not known is counted, and is no call of 0 ns.
func TestUntimed(t *testing.T) {
	table := NewTable(ByOp, 10)
	table.Count(&event.Event{Kind: event.Call, Op: event.OpFsync, Flags: event.Untimed})
	table.Count(&event.Event{Kind: event.Call, Op: event.OpFsync, Enter: 0, Exit: 1000})
	got := table.Total()
	if got.Calls != 2 || got.Untimed != 1 || got.Timed() != 1 || got.MeanNS() != 1000 || got.Latency[0] != 0 {
		t.Errorf("got %d calls, %d untimed, %d timed, mean %d ns, %d below 64 ns, want 2, 1, 1, 1000, 0",
			got.Calls, got.Untimed, got.Timed(), got.MeanNS(), got.Latency[0])
	}
}

// TestSignals counts signals by number and process, and no calls.
func TestSignals(t *testing.T) {
	by, err := ParseBy("process,signal")
	if err != nil {
		t.Fatal(err)
	}
	table := NewTable(by, 10)
	signal := func(pid uint32, sig int, action event.SignalAction) *event.Event {
		return &event.Event{Kind: event.Signalled, PID: pid, Comm: "x", Args: [6]uint64{uint64(sig), uint64(action)}}
	}
	for _, ev := range []*event.Event{
		signal(1, 10, event.SignalHandled), signal(1, 10, event.SignalHandled), signal(1, 15, event.SignalTerminates),
		signal(2, 11, event.SignalDumps), signal(2, 0, event.SignalHandled), signal(2, 1000, event.SignalHandled),
		{Kind: event.Call, Op: event.OpKill, PID: 1, Comm: "x", Exit: 1000},
	} {
		table.Count(ev)
	}
	want := map[Key][2]uint64{
		{PID: 1, Comm: "x", Signal: 10}: {2, 0}, {PID: 1, Comm: "x", Signal: 15}: {1, 1},
		{PID: 2, Comm: "x", Signal: 11}: {1, 1},
	}
	rows := table.Sorted(OrderCalls)
	for _, r := range rows {
		if got := [2]uint64{r.Calls, r.Failed}; got != want[r.Key] {
			t.Errorf("%+v: %d signals, %d fatal, want %v", r.Key, r.Calls, r.Failed, want[r.Key])
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d rows, want %d", len(rows), len(want))
	}
	_, err = ParseBy("signal,op")
	if err == nil || !strings.Contains(err.Error(), "signal cannot be combined with op") {
		t.Errorf("signals by operation: %v", err)
	}
}

// TestOneRowOfAFile: what is reached through a link counts for the file.
func TestOneRowOfAFile(t *testing.T) {
	table := NewTable(ByFile, 10)
	for _, ev := range []event.Event{
		{Op: event.OpRead, Files: []event.File{{Path: "/link/a", Real: "/real/a"}}},
		{Op: event.OpRead, Files: []event.File{{Path: "/real/a"}}},
		{Op: event.OpStat, Paths: []event.Path{{Raw: "a", Abs: "/link/a", Real: "/real/a"}}},
	} {
		table.Count(&ev)
	}
	rows := table.Sorted(OrderCalls)
	if len(rows) != 1 || rows[0].Key.File != "/real/a" || rows[0].Calls != 3 {
		t.Errorf("got %+v, want one row of /real/a with 3 calls", rows)
	}
}
