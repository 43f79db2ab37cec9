// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
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
