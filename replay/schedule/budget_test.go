// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"sync/atomic"
	"testing"
	"time"
)

// Once calls are made, no more is planned than caches hold, except for queues that have
// nothing to do; of these one is forgotten for which nothing comes.
func TestBudget(t *testing.T) {
	var halted atomic.Bool
	k := new(lookaheadBudget)
	k.init(&halted)
	give := func(content int64) bool { return k.charge(&Batch{content: content}) }
	if give(aheadBytes - 1) {
		t.Error("full before as much is planned as may be")
	}
	big := &Batch{held: 1}
	if !k.charge(big) {
		t.Error("not full")
	}
	k.startCalling()
	k.used, k.content = 0, 0
	if give(nearBytes-1) || !give(1) {
		t.Error("calls are made: there is room for some MiB")
	}
	l := newQueue(1, nil, nil)
	k.markIdle(l)
	if give(nearBytes) || !give(aheadBytes) {
		t.Error("a queue has nothing to do: there is room for more")
	}
	k.used, k.content = aheadBytes-1, nearBytes-1
	if give(0) {
		t.Error("what is no content may be planned further ahead")
	}
	k.used, k.content = nearBytes, nearBytes
	k.markBusy(l)
	if !give(0) {
		t.Error("the queue has something to do again")
	}
	k.markIdle(l)
	for range idleBatches {
		if give(0) {
			t.Fatal("the queue is forgotten too soon")
		}
	}
	if !give(0) || len(k.idle) != 0 {
		t.Error("the queue is not forgotten")
	}
	k.markBusy(l) // it was
}

// The planner goes on when there is room, when a queue has nothing to do, and when the
// replay is stopped.
func TestBudgetWait(t *testing.T) {
	for name, wake := range map[string]func(k *lookaheadBudget, b *Batch, halted *atomic.Bool){
		"room":    func(k *lookaheadBudget, b *Batch, _ *atomic.Bool) { k.release(b) },
		"a queue": func(k *lookaheadBudget, _ *Batch, _ *atomic.Bool) { k.markIdle(newQueue(1, nil, nil)) },
		"stopped": func(k *lookaheadBudget, _ *Batch, halted *atomic.Bool) { halted.Store(true); k.halt() },
	} {
		var halted atomic.Bool
		k := new(lookaheadBudget)
		k.init(&halted)
		k.startCalling()
		b := &Batch{content: nearBytes}
		k.charge(b)
		ended := make(chan struct{})
		go func() { k.waitForRoom(); close(ended) }()
		wake(k, b, &halted)
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("%s: the planner waits on", name)
		}
		if got := k.used; name == "room" && (got != 0 || k.content != 0) {
			t.Errorf("%d bytes are used by nothing", got)
		}
	}
}
