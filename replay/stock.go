package replay

import (
	"slices"
	"sync"
	"sync/atomic"
)

// aheadBytes is how much memory planned tasks may take that are not yet done. A replay
// plans as far ahead before it begins, so that planning does not take the processors from
// the calls that it is about.
const aheadBytes = 128 << 20

// nearBytes is how much of that may be content once calls are made: so much that what a
// worker is given is still in the caches of the processors, and not in memory only. Where
// the planner has to go further to find something for a lane that has nothing to do it may
// use all.
const nearBytes = 6 << 20

// dryBatches is for how many batches the planner looks for something for a lane that has
// nothing to do; then it is taken for one whose thread waits, or has ended.
const dryBatches = 1024

// stock is what is planned and not yet done: memory that the planner fills and workers give back.
type stock struct {
	mu      sync.Mutex
	cond    sync.Cond
	halted  *atomic.Bool
	near    bool  // calls are made as fast as possible
	used    int64 // bytes
	content int64 // bytes, a part of these
	given   int64 // batches
	waits   bool  // the planner does
	free    *batch
	dry     []*lane // that have nothing to do
}

func (k *stock) init(halted *atomic.Bool) { k.cond.L, k.halted = &k.mu, halted }

// begun notes that calls are made from now on.
func (k *stock) begun() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.near = true
}

// batch returns an empty one.
func (k *stock) batch() *batch {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.free
	if b == nil {
		return &batch{steps: make([]step, 0, batchSteps)}
	}
	k.free, b.next = b.next, nil
	return b
}

// take accounts for a batch that is handed to a lane. It reports whether there is no room
// for more.
func (k *stock) take(b *batch) (full bool) {
	b.content += int64(cap(b.bytes)) + int64(cap(b.parts))*partBytes
	b.held += int64(cap(b.steps))*stepBytes + b.content
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used += b.held
	k.content += b.content
	k.given++
	return k.full(8)
}

// full reports whether no more than eighths of the limits may be planned, and that much is.
func (k *stock) full(eighths int64) bool {
	if k.used >= aheadBytes/8*eighths {
		return true
	}
	if !k.near || k.content < nearBytes/8*eighths {
		return false
	}
	k.dry = slices.DeleteFunc(k.dry, func(l *lane) bool { return k.given-l.dry > dryBatches })
	return len(k.dry) == 0
}

// wait returns when there is room for more: some, so that the planner does not sleep for
// each batch.
func (k *stock) wait() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.full(7) && !k.halted.Load() {
		k.waits = true
		k.cond.Wait()
	}
	k.waits = false
}

// release takes back a batch that is done.
func (k *stock) release(b *batch) {
	held, content := b.held, b.content
	b.empty()
	k.mu.Lock()
	defer k.mu.Unlock()
	b.next, k.free = k.free, b
	k.used -= held
	k.content -= content
	if k.waits && !k.full(7) {
		k.waits = false
		k.cond.Signal()
	}
}

// starves notes that a lane has nothing to do, fed that it has.
func (k *stock) starves(l *lane) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.dry = k.given
	k.dry = append(k.dry, l)
	k.cond.Signal()
}

func (k *stock) fed(l *lane) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := slices.Index(k.dry, l); i >= 0 {
		k.dry = slices.Delete(k.dry, i, i+1)
	}
}

// halt lets the planner see that the replay was stopped: if it looked before, it is
// waiting now.
func (k *stock) halt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cond.Broadcast()
}
