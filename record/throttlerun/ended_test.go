// SPDX-License-Identifier: Apache-2.0

package throttlerun

import (
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// TestWhatThreadsWereAt has a parent whose wait returned since its child was killed first, and
// then another call: both are told as at the time when they were ended.
func TestWhatThreadsWereAt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.tape")
	w, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	const ms = 1_000_000
	for _, ev := range []event.Event{
		{Kind: event.Call, Op: event.OpPwrite64, TID: 11, Comm: "child", Enter: 100 * ms, Exit: 101 * ms},
		{Kind: event.Call, Op: event.OpRead, TID: 12, Comm: "done", Enter: 102 * ms, Exit: 103 * ms},
		{Kind: event.Exited, TID: 12, Comm: "done", Enter: 104 * ms, Exit: 104 * ms},
		{Kind: event.Call, Op: event.OpWait4, TID: 10, Comm: "parent", Ret: 11, Enter: 200 * ms, Exit: 3001 * ms},
		{Kind: event.Call, Op: event.OpWrite, TID: 10, Comm: "parent", Enter: 3002 * ms, Exit: 3003 * ms},
	} {
		if err := w.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(&trace.Manifest{Hosts: []trace.Host{{}}}); err != nil {
		t.Fatal(err)
	}
	got := whatThreadsWereAt(dir, 3000*ms, map[uint32]string{10: "wait4", 11: "pause"})
	const want = ": thread 11 (child) in pause, after pwrite64, for 2.90 s; thread 10 (parent) in wait4 for 2.80 s"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
