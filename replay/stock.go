package replay

import (
	"slices"
	"sync"
	"sync/atomic"
)

// How much memory planned tasks may take that are not yet done. Before the first call a
// replay plans aheadBytes, so that planning does not take the processors from the calls
// that it is about. After that it keeps to nearBytes, so that what a worker gets is still
// in the caches of the processors and not only in memory. Where the planner has to go
// further to find something for a lane that has nothing to do it may plan aheadBytes again.
const (
	aheadBytes = 128 << 20
	nearBytes  = 6 << 20
)

// dryBatches is for how many batches the planner looks for something for a lane that has
// nothing to do; then it is taken for one whose thread waits, or has ended.
const dryBatches = 1024

// stock is what is planned and not yet done: memory that the planner fills and workers give back.
type stock struct {
	mu     sync.Mutex
	cond   sync.Cond
	halted *atomic.Bool
	near   bool  // calls are made
	used   int64 // bytes
	given  int64 // batches
	free   *batch
	dry    []*lane // that have nothing to do
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
	b.held += int64(cap(b.steps))*stepBytes + int64(cap(b.bytes)) + int64(cap(b.parts))*partBytes
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used += b.held
	k.given++
	return k.used >= k.limit()
}

// limit returns how many bytes may be planned.
func (k *stock) limit() int64 {
	if !k.near {
		return aheadBytes
	}
	k.dry = slices.DeleteFunc(k.dry, func(l *lane) bool { return k.given-l.dry > dryBatches })
	if len(k.dry) > 0 {
		return aheadBytes
	}
	return nearBytes
}

// wait returns when there is room for more. The planner is woken a while after that
// only, so as not to sleep for each batch.
func (k *stock) wait() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for !k.halted.Load() {
		if n := k.limit(); k.used < n-n/8 {
			return
		}
		k.cond.Wait()
	}
}

// release takes back a batch that is done.
func (k *stock) release(b *batch) {
	held := b.held
	b.empty()
	k.mu.Lock()
	defer k.mu.Unlock()
	b.next, k.free = k.free, b
	was := k.used
	k.used -= held
	if n := k.limit(); was >= n-n/8 && k.used < n-n/8 {
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
