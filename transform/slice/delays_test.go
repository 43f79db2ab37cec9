// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"math"
	"testing"

	"github.com/iotape/iotape/event"
)

// TestDelays: what a thread waited for a processor in calls that were left out is before
// the next that is kept.
func TestDelays(t *testing.T) {
	var d delays
	call := func(host, tid uint32, before, within uint32, flags event.EventFlags) *event.Event {
		return &event.Event{Host: host, TID: tid, Flags: flags, DelayBefore: before, DelayWithin: within}
	}
	kept := func(ev *event.Event, want uint32) {
		t.Helper()
		if d.kept(ev); ev.DelayBefore != want {
			t.Errorf("thread %d/%d waited %d ns before, want %d", ev.Host, ev.TID, ev.DelayBefore, want)
		}
	}
	kept(call(0, 1, 5, 6, event.Delays), 5)
	d.leftOut(call(0, 1, 10, 20, event.Delays))
	d.leftOut(call(0, 1, 100, 200, event.Delays))
	d.leftOut(call(0, 2, 1000, 2000, event.Delays))
	d.leftOut(call(0, 1, 7, 7, 0))
	kept(call(1, 1, 1, 1, event.Delays), 1)
	kept(call(0, 1, 0, 0, 0), 0)
	kept(call(0, 1, 3, 4, event.Delays), 333)
	kept(call(0, 1, 3, 4, event.Delays), 3)
	d.leftOut(call(0, 1, math.MaxUint32, math.MaxUint32, event.Delays))
	kept(call(0, 1, 3, 4, event.Delays), math.MaxUint32)
	kept(&event.Event{Kind: event.Exited, TID: 2}, 0)
	kept(call(0, 2, 8, 0, event.Delays), 8) // another thread of that number
}
