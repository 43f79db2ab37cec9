package replay

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A worker that waits for a step of another lane looks for some microseconds whether it is
// done, and then sleeps on a word of its own (futex(2)). Before that it is entered with the
// lane, with the count that it waits for; a lane that gets so far wakes those whose step
// has come, and nobody else. With one word for all, each step of a lane woke all that
// waited for any.
//
// No wake-up is lost. Loads and stores of package atomic are in one order for all threads.
//
//	the one that waits (await)           the one that is waited for (finish)
//	E  it is in the list, wanted <= pos  D  done = pos
//	Z  word = 0                          W  is wanted <= done?
//	C  is done >= pos?                   L  takes it out of the list
//	S  sleeps if word == 0               O  word = 1, wakes it
//
// If C does not see D, then E < Z < C < D < W: so W finds it wanted, L finds it in the
// list, and O comes after Z. Then S either comes after O, and the word is not 0, or before
// it, and is woken: the kernel looks at the word and begins the sleep as one. If C does
// see D, it does not sleep. O can come late, when its worker waits for something else; that
// is a look for nothing, because it goes on with Z and C.
//
// wanted is only ever wrong by being too small: it is changed with the list locked, except
// that finish reads it.

// sleepers are those who wait for steps of a lane.
type sleepers struct {
	wanted atomic.Uint64 // the least count that somebody waits for, or nobody
	mu     sync.Mutex
	list   []waiting
}

// waiting is one that waits.
type waiting struct {
	pos  uint64
	bunk *bunk
}

// bunk is what a worker sleeps on.
type bunk struct {
	word atomic.Uint32 // 0 while it sleeps or is about to
	most int64         // ns after which it looks whether the replay was stopped
	_    [48]byte
}

func newBunk() *bunk { return &bunk{most: napNS} }

const nobody = ^uint64(0)

const (
	futexWaitPrivate = 0 | 128
	futexWakePrivate = 1 | 128
)

// sleep returns when the bunk's word is not 0, after most ns, or for no reason.
func (b *bunk) sleep() {
	ts := unix.NsecToTimespec(b.most)
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.word)), futexWaitPrivate, 0, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// wake ends the sleep of who is in the bunk.
func (b *bunk) wake() {
	b.word.Store(1)
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.word)), futexWakePrivate, 1, 0, 0, 0)
}

// enter notes that somebody waits until pos steps are done.
func (s *sleepers) enter(pos uint64, b *bunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, waiting{pos, b})
	if pos < s.wanted.Load() {
		s.wanted.Store(pos)
	}
}

// leave takes out one that waits no longer, if it is still there.
func (s *sleepers) leave(b *bunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(func(w *waiting) bool { return w.bunk == b })
}

// reached wakes those who waited for no more than done steps.
func (s *sleepers) reached(done uint64) {
	var few [16]*bunk
	woken := few[:0]
	s.mu.Lock()
	s.remove(func(w *waiting) bool {
		if w.pos <= done {
			woken = append(woken, w.bunk)
		}
		return w.pos <= done
	})
	s.mu.Unlock()
	for _, b := range woken {
		b.wake()
	}
}

// remove takes out those who fit, with the list locked.
func (s *sleepers) remove(fits func(*waiting) bool) {
	kept, least := s.list[:0], nobody
	for i := range s.list {
		if w := s.list[i]; !fits(&w) {
			kept = append(kept, w)
			least = min(least, w.pos)
		}
	}
	clear(s.list[len(kept):])
	s.list = kept
	s.wanted.Store(least)
}

// finish notes that a step is done. Only one thread at a time finishes steps of a lane.
func (l *lane) finish(pos uint64) {
	l.done.Store(pos)
	if pos >= l.sleepers.wanted.Load() {
		l.sleepers.reached(pos)
	}
}

// spins is how often a worker looks whether it may go on before it sleeps: for some
// microseconds, which is what sleeping and waking up would take.
const spins = 60

// await returns when the lane's first pos steps are done, or halted is set, of which it
// hears within b.most ns.
func (l *lane) await(pos uint64, b *bunk, halted *atomic.Bool) {
	for range spins {
		if l.done.Load() >= pos {
			return
		}
		pause()
	}
	l.sleepers.enter(pos, b)
	for {
		b.word.Store(0)
		if l.done.Load() >= pos || halted.Load() {
			break
		}
		b.sleep()
	}
	l.sleepers.leave(b)
}
