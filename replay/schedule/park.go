// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A worker that waits for a step of another queue polls for some microseconds whether it is
// done, and then parks on a word of its own (futex(2)). Before that it adds itself to the
// queue's waiters, with the position that it waits for; a queue that reaches a position wakes
// the workers that wait for it, and no others. With one word for all, each step of a queue
// woke all that waited for any.
//
// No wake-up is lost. Loads and stores of package atomic are in one order for all threads.
//
//	the worker that waits (Await)        the worker of the queue (Finish)
//	E  it is in the list, next <= pos  D  done = pos
//	Z  word = 0                          W  is next <= done?
//	C  is done >= pos?                   L  takes it out of the list
//	S  sleeps if word == 0               O  word = 1, wakes it
//
// If C does not see D, then E < Z < C < D < W: so W finds it next, L finds it in the
// list, and O comes after Z. Then S either comes after O, and the word is not 0, or before
// it, and is woken: the kernel looks at the word and begins the sleep as one. If C does
// see D, it does not sleep. O can come late, when its worker waits for something else; that
// is a look for nothing, because it goes on with Z and C.
//
// next is only ever wrong by being too small: it is changed with the list locked, except
// that finish reads it.

// waitQueue are the workers that wait for steps of a queue.
type waitQueue struct {
	next atomic.Uint64 // the least position that a worker waits for, or noPosition
	mu   sync.Mutex
	list []waiter
}

// waiter is a worker that waits for a position.
type waiter struct {
	pos    uint64
	parker *parker
}

// parker is what a worker parks on.
type parker struct {
	word      atomic.Uint32 // 0 while it is parked or about to be
	timeoutNS int64         // after which it polls whether the replay was stopped
	_         [48]byte
}

func newParker() *parker { return &parker{timeoutNS: napNS} }

const noPosition = ^uint64(0)

const (
	futexWaitPrivate = 0 | 128
	futexWakePrivate = 1 | 128
)

// park returns when the word is not 0, after timeoutNS, or for no reason.
func (b *parker) park() {
	ts := unix.NsecToTimespec(b.timeoutNS)
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.word)), futexWaitPrivate, 0,
		uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// unpark wakes the worker that is parked.
func (b *parker) unpark() {
	b.word.Store(1)
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.word)), futexWakePrivate, 1, 0, 0, 0)
}

// add adds a worker that waits until pos steps are done.
func (s *waitQueue) add(pos uint64, b *parker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, waiter{pos, b})
	if pos < s.next.Load() {
		s.next.Store(pos)
	}
}

// remove takes out a worker that waits no longer, if it is still there.
func (s *waitQueue) remove(b *parker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeIf(func(w *waiter) bool { return w.parker == b })
}

// wakeUpTo wakes the workers that wait for no more than done steps.
func (s *waitQueue) wakeUpTo(done uint64) {
	var few [16]*parker
	woken := few[:0]
	s.mu.Lock()
	s.removeIf(func(w *waiter) bool {
		if w.pos <= done {
			woken = append(woken, w.parker)
		}
		return w.pos <= done
	})
	s.mu.Unlock()
	for _, b := range woken {
		b.unpark()
	}
}

// removeIf takes out the waiters that match, with the list locked.
func (s *waitQueue) removeIf(matches func(*waiter) bool) {
	kept, least := s.list[:0], noPosition
	for i := range s.list {
		if w := s.list[i]; !matches(&w) {
			kept = append(kept, w)
			least = min(least, w.pos)
		}
	}
	clear(s.list[len(kept):])
	s.list = kept
	s.next.Store(least)
}

// spins is how often a worker polls before it parks: for some microseconds, which is what
// parking and waking up would take.
const spins = 60
