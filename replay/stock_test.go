package replay

import (
	"sync/atomic"
	"testing"
	"time"
)

// Once calls are made, no more is planned than caches hold, except for lanes that have
// nothing to do; of these one is forgotten for which nothing comes.
func TestStock(t *testing.T) {
	var halted atomic.Bool
	k := new(stock)
	k.init(&halted)
	give := func(content int64) bool { return k.take(&batch{content: content}) }
	if give(aheadBytes - 1) {
		t.Error("full before as much is planned as may be")
	}
	big := &batch{held: 1}
	if !k.take(big) {
		t.Error("not full")
	}
	k.begun()
	k.used, k.content = 0, 0
	if give(nearBytes-1) || !give(1) {
		t.Error("calls are made: there is room for some MiB")
	}
	l := newLane(1)
	k.starves(l)
	if give(nearBytes) || !give(aheadBytes) {
		t.Error("a lane has nothing to do: there is room for more")
	}
	k.used, k.content = aheadBytes-1, nearBytes-1
	if give(0) {
		t.Error("what is no content may be planned further ahead")
	}
	k.used, k.content = nearBytes, nearBytes
	k.fed(l)
	if !give(0) {
		t.Error("the lane has something to do again")
	}
	k.starves(l)
	for range dryBatches {
		if give(0) {
			t.Fatal("the lane is forgotten too soon")
		}
	}
	if !give(0) || len(k.dry) != 0 {
		t.Error("the lane is not forgotten")
	}
	k.fed(l) // it was
}

// The planner goes on when there is room, when a lane has nothing to do, and when the
// replay is stopped.
func TestStockWait(t *testing.T) {
	for name, wake := range map[string]func(k *stock, b *batch, halted *atomic.Bool){
		"room":    func(k *stock, b *batch, _ *atomic.Bool) { k.release(b) },
		"a lane":  func(k *stock, _ *batch, _ *atomic.Bool) { k.starves(newLane(1)) },
		"stopped": func(k *stock, _ *batch, halted *atomic.Bool) { halted.Store(true); k.halt() },
	} {
		var halted atomic.Bool
		k := new(stock)
		k.init(&halted)
		k.begun()
		b := &batch{content: nearBytes}
		k.take(b)
		ended := make(chan struct{})
		go func() { k.wait(); close(ended) }()
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
