// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Queues that wait for each other all the time come to their ends, though no worker polls
// again for ten minutes: no wake-up is lost.
func TestPark(t *testing.T) {
	const n, steps = 8, 3000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * n))
	type wait struct {
		queue int
		pos   uint64
	}
	// One order of all steps; each waits for one or two that come shortly before it.
	rng := rand.New(rand.NewPCG(5, 8))
	plan := make([][][]wait, n)
	for range n * steps {
		i := rng.IntN(n)
		var waits []wait
		for range rng.IntN(3) {
			if o := rng.IntN(n); o != i && len(plan[o]) > 0 {
				waits = append(waits, wait{o, uint64(len(plan[o]))})
			}
		}
		plan[i] = append(plan[i], waits)
	}
	queues := make([]*Queue, n)
	for i := range queues {
		queues[i] = newQueue(uint32(i), nil, nil)
	}
	var halted atomic.Bool
	var all sync.WaitGroup
	value := make([]uint64, n) // of each queue, written with each step; read by those who waited for it
	var slept atomic.Int64
	for i := range n {
		all.Go(func() {
			runtime.LockOSThread()
			b := newParker()
			b.timeoutNS = int64(10 * time.Minute)
			for k, waits := range plan[i] {
				for _, w := range waits {
					if queues[w.queue].done.Load() < w.pos {
						slept.Add(1)
						queues[w.queue].await(w.pos, b, &halted)
						if got := queues[w.queue].done.Load(); got < w.pos {
							t.Errorf("queue %d woke at step %d of queue %d, and not at %d", i, got, w.queue, w.pos)
						}
					}
				}
				if k%64 == i { // the others sleep meanwhile
					time.Sleep(10 * time.Microsecond)
				}
				value[i]++
				queues[i].Finish(uint64(k + 1))
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		for i, l := range queues {
			l.waiters.mu.Lock()
			t.Errorf("queue %d: %d of %d steps, wanted %d, waited for by %d", i, l.done.Load(), len(plan[i]),
				l.waiters.next.Load(), len(l.waiters.list))
			l.waiters.mu.Unlock()
		}
		t.FailNow()
	}
	for i, l := range queues {
		if l.waiters.next.Load() != noPosition || len(l.waiters.list) > 0 {
			t.Errorf("queue %d: %d wait for step %d after the end", i, len(l.waiters.list), l.waiters.next.Load())
		}
		if value[i] != uint64(len(plan[i])) {
			t.Errorf("queue %d: %d steps, want %d", i, value[i], len(plan[i]))
		}
	}
	if slept.Load() == 0 {
		t.Error("no worker ever waited")
	}
}

// A queue wakes those whose step has come, and no others.
func TestWakeUp(t *testing.T) {
	l := newQueue(0, nil, nil)
	parkers := map[uint64]*parker{}
	for _, pos := range []uint64{7, 3, 5, 9, 4} {
		parkers[pos] = newParker()
		l.waiters.add(pos, parkers[pos])
	}
	woken := func() (list []uint64) {
		for pos := range uint64(10) {
			if b := parkers[pos]; b != nil && b.word.Load() != 0 {
				list = append(list, pos)
			}
		}
		return list
	}
	for _, tt := range []struct {
		done, wanted uint64
		woken        int // in all
	}{{1, 3, 0}, {2, 3, 0}, {3, 4, 1}, {5, 7, 3}, {6, 7, 3}} {
		l.Finish(tt.done)
		if got := woken(); len(got) != tt.woken || len(got) > 0 && got[len(got)-1] > tt.done {
			t.Errorf("at %d are awake: %v, want %d", tt.done, got, tt.woken)
		}
		if got := l.waiters.next.Load(); got != tt.wanted {
			t.Errorf("at %d is wanted: %d, want %d", tt.done, got, tt.wanted)
		}
	}
	l.waiters.remove(parkers[7])
	if got := l.waiters.next.Load(); got != 9 {
		t.Errorf("after one left is wanted: %d, want 9", got)
	}
	l.Finish(8)
	if got := woken(); len(got) != 3 {
		t.Errorf("at 8 are awake: %v", got)
	}
}

// One that waits hears that the replay was stopped.
func TestParkHalted(t *testing.T) {
	l, b := newQueue(0, nil, nil), newParker()
	var halted atomic.Bool
	ended := make(chan struct{})
	go func() { l.await(1, b, &halted); close(ended) }()
	for l.waiters.next.Load() != 1 {
		runtime.Gosched()
	}
	halted.Store(true)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it waits on")
	}
	if got := l.waiters.next.Load(); got != noPosition {
		t.Errorf("wanted is %d", got)
	}
}
