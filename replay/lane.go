package replay

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/iotape/iotape/event"
)

// stepKind is how a worker does a step.
type stepKind uint8

const (
	stepTask  stepKind = iota // a task with everything that it needs
	stepRead                  // a plain read into one buffer
	stepWrite                 // a plain write from one
)

// step is a task as its worker sees it. The calls that tapes are full of, reads and
// writes of one buffer that succeeded, are nothing but a step; all others have a task. Of
// steps there are so many that what they take of caches is a part of what calls take.
type step struct {
	kind    stepKind
	compare bool   // what is to be read is known
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
	data    *byte  // what is written or, without parts, to be read
	size    uint32 // bytes of data
	deps    uint32 // how many of the batch's deps it waits for
	part    uint32 // the first of the batch's parts that are to be read
	parts   uint32 // how many there are
}

// bytes returns the step's data, nil if there are none.
func (s *step) bytes() []byte { return unsafe.Slice(s.data, s.size) }

// holds makes b the step's data.
func (s *step) holds(b []byte) { s.data, s.size = unsafe.SliceData(b), uint32(len(b)) }

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

// batchBytes is how much content and tasks a batch holds before it is handed over with
// fewer steps, and keptBytes how much memory it keeps for its next use.
const (
	batchBytes = 1 << 20
	keptBytes  = 1 << 20
)

// batch is a run of steps of one lane.
type batch struct {
	steps   []step
	whens   []when // of the steps; none if calls are made as fast as possible
	deps    []dep  // of the steps, one's behind the other's
	bytes   []byte // that the steps' data are parts of
	parts   []part // of the steps
	held    int64  // bytes of memory that it keeps; all of it once it is handed over
	content int64  // bytes of it that are content
	next    *batch
	last    bool // the lane ends
}

// room returns the batch's bytes with room for n more: others if it is full, so that those
// which steps have parts of stay where they are. Others are twice as large, for who knows
// how many steps there will be.
func (b *batch) room(n int64) []byte {
	if have := int64(cap(b.bytes)); have-int64(len(b.bytes)) < n {
		b.content += have
		b.bytes = make([]byte, 0, max(n, min(max(4*n, 2*have), keptBytes)))
	}
	return b.bytes
}

// empty makes the batch ready for its next use.
func (b *batch) empty() {
	clear(b.steps)
	b.steps, b.whens, b.deps, b.held, b.content = b.steps[:0], b.whens[:0], b.deps[:0], 0, 0
	if b.bytes = b.bytes[:0]; cap(b.bytes) > keptBytes {
		b.bytes = nil
	}
	if b.parts = b.parts[:0]; int64(cap(b.parts))*partBytes > keptBytes {
		b.parts = nil
	}
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
	dry      int64 // when it ran out of batches; see stock
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
func (l *lane) take(k *stock) *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		k.starves(l)
		defer k.fed(l)
	}
	for l.first == nil {
		l.cond.Wait()
	}
	b := l.first
	l.first, b.next = b.next, nil
	return b
}
