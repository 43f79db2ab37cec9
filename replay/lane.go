package replay

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"iotape/event"

	"golang.org/x/sys/unix"
)

// stepKind is how a worker does a step.
type stepKind uint8

const (
	stepTask  stepKind = iota // a task with everything that it needs
	stepRead                  // a plain read into one buffer
	stepWrite                 // a plain write from one
)

// step is a task as its worker sees it. The calls that tapes are full of, reads and
// writes of one buffer that succeeded, are nothing but a step; all others have a task.
type step struct {
	kind    stepKind
	compare bool   // data is what is to be read
	short   bool   // it took so little that the thread need not give way to others
	places  bool   // off is passed; else the call goes on from the file's position
	nr      uint16 // the system call
	op      event.Op
	count   uint32 // bytes asked for
	tid     uint32
	seq     uint64
	off     int64
	ret     int64 // as recorded
	h       *handle
	task    *task
	data    []byte
	keep    []byte // where what was written is kept for reads, see shadow
	deps    uint32 // how many of the batch's deps it waits for
}

// when is the time of a step, where calls are paced.
type when struct {
	due   int64         // recorded entry, ns
	think int64         // ns of computing before it, as recorded
	sleep int64         // ns of sleeping, after what it waits for
	at    *atomic.Int64 // see task
}

// dep is what a step waits for: that a lane has done its first pos steps.
type dep struct {
	lane *lane
	pos  uint64
	lag  int64         // ns that have to go by after that
	at   *atomic.Int64 // when that was, with a lag
}

const stepBytes = int64(unsafe.Sizeof(step{}))

// batchSteps is how many steps are handed over at a time.
const batchSteps = 128

// batchBytes is how much memory a batch may take before it is handed over with less.
const batchBytes = 16 << 20

// batch is a run of steps of one lane.
type batch struct {
	steps []step
	whens []when // of the steps; none if calls are made as fast as possible
	deps  []dep  // of the steps, one's behind the other's
	bytes []byte // that the steps' data are parts of
	held  int64  // bytes of memory that it keeps
	next  *batch
	last  bool // the lane ends
}

// lane is one line of steps with the worker that does them one after the other: those
// of a thread of the recording and, when it has ended, of a later one.
type lane struct {
	slot uint32
	fill *batch // being filled by the planner

	mu    sync.Mutex
	cond  sync.Cond
	first *batch // handed over, not yet taken
	tail  *batch

	_ [64]byte
	// done is how many steps are done; its lower half is waited on (futex(2)).
	done atomic.Uint64
	// wanted is the least that somebody sleeps for: who gets there wakes all up.
	wanted atomic.Uint64
	_      [64]byte
	wants  wants // of other members of a team
	here   bool  // it has a worker
}

func newLane(slot uint32) *lane {
	l := &lane{slot: slot}
	l.cond.L = &l.mu
	l.wanted.Store(nobody)
	l.wants.next.Store(nobody)
	return l
}

// hand gives the lane's worker a batch.
func (l *lane) hand(b *batch) {
	l.mu.Lock()
	if l.first == nil {
		l.first = b
	} else {
		l.tail.next = b
	}
	l.tail = b
	l.mu.Unlock()
	l.cond.Signal()
}

// take returns the next batch, when there is one.
func (l *lane) take() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.first == nil {
		l.cond.Wait()
	}
	b := l.first
	l.first, b.next = b.next, nil
	return b
}

// finish notes that a step is done.
func (l *lane) finish(pos uint64) {
	l.done.Store(pos)
	for w := l.wanted.Load(); pos >= w; w = l.wanted.Load() {
		if l.wanted.CompareAndSwap(w, nobody) {
			l.wake()
			return
		}
	}
}

const nobody = ^uint64(0)

// want says that somebody is about to sleep until pos steps are done.
func (l *lane) want(pos uint64) {
	for w := l.wanted.Load(); pos < w && !l.wanted.CompareAndSwap(w, pos); w = l.wanted.Load() {
	}
}

// nap is how long a worker sleeps at most before it looks again: what another one does
// may wake up all just before one of them sleeps.
const nap = int64(time.Millisecond)

func (l *lane) word() *uint32 {
	return (*uint32)(unsafe.Pointer(&l.done)) // the lower half: both architectures are little-endian
}

const (
	futexWaitPrivate = 0 | 128
	futexWakePrivate = 1 | 128
)

func (l *lane) wake() {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(l.word())), futexWakePrivate, 1<<30, 0, 0, 0)
}

// spins is how often a worker looks whether it may go on before it sleeps: for some
// microseconds, which is what sleeping and waking up would take.
const spins = 60

// await returns when the lane's first pos steps are done, or halted is set, of which it
// hears within a moment.
func (l *lane) await(pos uint64, halted *atomic.Bool) {
	for range spins {
		if l.done.Load() >= pos {
			return
		}
		pause()
	}
	for {
		l.want(pos)
		now := l.done.Load()
		if now >= pos || halted.Load() {
			return
		}
		ts := unix.NsecToTimespec(nap)
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(l.word())), futexWaitPrivate, uintptr(uint32(now)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	}
}
