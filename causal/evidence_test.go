// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"slices"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
)

// TestEvidence: thread 2 spins until thread 1 has written, which nothing in the tape shows,
// computes for 2 ms, and writes.
func TestEvidence(t *testing.T) {
	x := &tape{t: t}
	x.storage(1, 0, 1*ms, event.OpPwrite64, nil)
	x.storage(2, 0, 1*ms, event.OpFsync, func(e *event.Event) { e.Files[0].Ino = 8 })
	x.storage(1, 40*ms, 41*ms, event.OpPwrite64, nil)
	x.storage(2, 43*ms, 44*ms, event.OpFsync, func(e *event.Event) { e.Files[0].Ino = 8 })
	for _, e := range x.events {
		e.CPU = e.Enter
	}
	notes, _, err := Annotate(x.all())
	if err != nil {
		t.Fatal(err)
	}
	if notes.Compute(3) != 42*time.Millisecond || len(notes.Before(3)) != 0 {
		t.Errorf("without it: %v, %v", notes.Compute(3), notes.Before(3))
	}
	more := &Evidence{
		Waits: []Found{{Event: 3, For: 2, Lag: 2 * time.Millisecond}},
		Gaps: []Gap{{Event: 1, Compute: -1, Idle: -1}, {Event: 2, Compute: 39 * time.Millisecond, Idle: -1},
			{Event: 3, Compute: 2 * time.Millisecond, Idle: -1}},
	}
	notes, sum, err := AnnotateWith(x.all(), more)
	if err != nil {
		t.Fatal(err)
	}
	an := notes.Cursor().At(3)
	if an.Compute.Round(time.Microsecond) != 2*time.Millisecond ||
		!slices.Equal(an.Waits, []Dependency{{2, 2 * time.Millisecond}}) {
		t.Errorf("%+v", an)
	}
	// What is as recorded, within what measuring can tell, stays.
	if notes.Compute(2) != 39*time.Millisecond || sum.Found[Throttle] != 1 {
		t.Errorf("%v, %v", notes.Compute(2), sum.Found)
	}
	if sum.Nodes[1].Compute/ms != 2 || sum.ExplainedNS != 44*ms {
		t.Errorf("%+v explains %d", sum.Nodes[1], sum.ExplainedNS)
	}
	if p := sum.Path; p.Compute+p.Storage+p.Sleep != sum.ExplainedNS || p.Compute < 41*ms {
		t.Errorf("the longest path is %+v", p)
	}

	// Alone: not even that both touched the same bytes.
	x.storage(2, 45*ms, 46*ms, event.OpPread64, nil)
	notes, sum, err = AnnotateWith(x.all(), &Evidence{Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Waits != 0 || len(notes.Before(4)) != 0 {
		t.Errorf("%+v", sum)
	}
	for _, bad := range []*Evidence{{Waits: []Found{{Event: 1, For: 1}}}, {Waits: []Found{{Event: 99, For: 1}}},
		{Gaps: []Gap{{Event: 2}, {Event: 1}}}} {
		if _, _, err := AnnotateWith(x.all(), bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
