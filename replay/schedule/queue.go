// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Queue is the line of steps of one slot: those of a thread of the recording and, when it has
// ended, of a later one. One worker does them, one after the other.
type Queue struct {
	slot   uint32
	budget *lookaheadBudget
	link   *Link  // nil: there is no team
	fill   *Batch // being filled by the dispatcher

	mu    sync.Mutex
	cond  sync.Cond
	first *Batch // handed over, not yet taken
	tail  *Batch

	_         [64]byte
	done      atomic.Uint64 // how many steps are done
	waiters   waitQueue
	_         [64]byte
	remote    remoteWants // of other members of a team
	local     bool        // it has a worker here
	idleSince int64       // when it ran out of batches; see lookaheadBudget
}

func newQueue(slot uint32, budget *lookaheadBudget, link *Link) *Queue {
	q := &Queue{slot: slot, budget: budget, link: link}
	q.cond.L = &q.mu
	q.waiters.next.Store(noPosition)
	q.remote.next.Store(noPosition)
	return q
}

// push hands the queue's worker a batch.
func (q *Queue) push(b *Batch) {
	q.mu.Lock()
	if q.first == nil {
		q.first = b
	} else {
		q.tail.next = b
	}
	q.tail = b
	q.mu.Unlock()
	q.cond.Signal()
}

// Next returns the next batch, when there is one; nil at the end.
func (q *Queue) Next() *Batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == nil {
		q.budget.markIdle(q)
		defer q.budget.markBusy(q)
	}
	for q.first == nil {
		q.cond.Wait()
	}
	b := q.first
	q.first, b.next = b.next, nil
	if b.last {
		return nil
	}
	return b
}

// Release gives a batch back whose steps are done.
func (q *Queue) Release(b *Batch) { q.budget.release(b) }

// Finish notes that the queue's first pos steps are done. Only one thread at a time finishes
// steps of a queue.
func (q *Queue) Finish(pos uint64) {
	q.reach(pos)
	if pos >= q.remote.next.Load() {
		q.report(pos)
	}
}

// reach is Finish for the waiters of this process.
func (q *Queue) reach(pos uint64) {
	q.done.Store(pos)
	if pos >= q.waiters.next.Load() {
		q.waiters.wakeUpTo(pos)
	}
}

// await returns when the queue's first pos steps are done or, within p.timeoutNS, when halted
// is set.
func (q *Queue) await(pos uint64, p *parker, halted *atomic.Bool) {
	for range spins {
		if q.done.Load() >= pos {
			return
		}
		pause()
	}
	q.waiters.add(pos, p)
	for {
		p.word.Store(0)
		if q.done.Load() >= pos || halted.Load() {
			break
		}
		p.park()
	}
	q.waiters.remove(p)
}

// remoteWants are the steps of a queue that other members wait for.
type remoteWants struct {
	next atomic.Uint64 // the first that is not done, or noPosition
	mu   sync.Mutex
	list []uint64 // ascending
}

// reportAt notes that another member waits for the queue's first pos steps.
func (q *Queue) reportAt(pos uint64) {
	w := &q.remote
	w.mu.Lock()
	if i, known := slices.BinarySearch(w.list, pos); !known {
		w.list = slices.Insert(w.list, i, pos)
		w.next.Store(w.list[0])
	}
	w.mu.Unlock()
	if done := q.done.Load(); done >= pos {
		q.report(done)
	}
}

// report sends the other members how many steps are done, if one of them waits for that.
func (q *Queue) report(done uint64) {
	w := &q.remote
	w.mu.Lock()
	defer w.mu.Unlock()
	i, _ := slices.BinarySearch(w.list, done+1)
	if i == 0 {
		return
	}
	w.list = slices.Delete(w.list, 0, i)
	if len(w.list) > 0 {
		w.next.Store(w.list[0])
	} else {
		w.next.Store(noPosition)
	}
	q.link.send(q.slot, done)
}
