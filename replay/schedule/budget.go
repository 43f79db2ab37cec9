// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/iotape/iotape/replay/plan"
)

// aheadBytes is how much memory planned tasks may take that are not yet done. A replay
// plans as far ahead before it begins, so that planning does not take the processors from
// the calls.
const aheadBytes = 128 << 20

// nearBytes is how much of that may be content once calls are made: so much that the content
// of a batch is still in the caches of the processors when a worker takes it. Where the
// planner has to go further to find steps for an idle queue, it may use all of aheadBytes.
const nearBytes = 6 << 20

// idleBatches is for how many batches the planner searches for steps for an idle queue; then
// the queue's thread is taken to wait, or to have ended.
const idleBatches = 1024

// lookaheadBudget bounds what is planned and not yet done: memory that the planner fills and
// workers release.
type lookaheadBudget struct {
	mu        sync.Mutex
	cond      sync.Cond
	halted    *atomic.Bool
	calling   bool  // calls are made as fast as possible
	used      int64 // bytes
	content   int64 // bytes, a part of these
	handedOut int64 // batches
	waiting   bool  // the planner waits for room
	free      *Batch
	idle      []*Queue // that have nothing to do
}

func (k *lookaheadBudget) init(halted *atomic.Bool) { k.cond.L, k.halted = &k.mu, halted }

// startCalling notes that calls are made from now on.
func (k *lookaheadBudget) startCalling() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calling = true
}

// batch returns an empty batch.
func (k *lookaheadBudget) batch() *Batch {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.free
	if b == nil {
		return &Batch{Steps: make([]plan.Step, 0, batchSteps)}
	}
	k.free, b.next = b.next, nil
	return b
}

// charge accounts for a batch that is handed to a queue. It reports whether there is no room
// for more.
func (k *lookaheadBudget) charge(b *Batch) (full bool) {
	b.charge()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used += b.held
	k.content += b.content
	k.handedOut++
	return k.full(8)
}

// full reports whether no more than eighths of the limits may be planned, and that much is.
func (k *lookaheadBudget) full(eighths int64) bool {
	if k.used >= aheadBytes/8*eighths {
		return true
	}
	if !k.calling || k.content < nearBytes/8*eighths {
		return false
	}
	k.idle = slices.DeleteFunc(k.idle, func(l *Queue) bool { return k.handedOut-l.idleSince > idleBatches })
	return len(k.idle) == 0
}

// waitForRoom returns when there is room for more: for several batches, so that the planner
// does not wait for each one.
func (k *lookaheadBudget) waitForRoom() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.full(7) && !k.halted.Load() {
		k.waiting = true
		k.cond.Wait()
	}
	k.waiting = false
}

// release takes back a batch that is done.
func (k *lookaheadBudget) release(b *Batch) {
	held, content := b.held, b.content
	b.reset()
	k.mu.Lock()
	defer k.mu.Unlock()
	b.next, k.free = k.free, b
	k.used -= held
	k.content -= content
	if k.waiting && !k.full(7) {
		k.waiting = false
		k.cond.Signal()
	}
}

// markIdle notes that a queue has nothing to do, markBusy that it has.
func (k *lookaheadBudget) markIdle(l *Queue) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.idleSince = k.handedOut
	k.idle = append(k.idle, l)
	k.cond.Signal()
}

func (k *lookaheadBudget) markBusy(l *Queue) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := slices.Index(k.idle, l); i >= 0 {
		k.idle = slices.Delete(k.idle, i, i+1)
	}
}

// halt wakes the planner, which then sees that the replay was stopped.
func (k *lookaheadBudget) halt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cond.Broadcast()
}
