package replay

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"iotape/event"
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

	_        [64]byte
	done     atomic.Uint64 // how many steps are done
	sleepers sleepers
	_        [64]byte
	wants    wants // of other members of a team
	here     bool  // it has a worker
}

func newLane(slot uint32) *lane {
	l := &lane{slot: slot}
	l.cond.L = &l.mu
	l.sleepers.wanted.Store(nobody)
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
