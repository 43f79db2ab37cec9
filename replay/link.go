package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// RecordBytes is the length of what members of a team tell each other: a lane (u32), and
// how many of its tasks are done (u64), both little-endian. Lane ControlLane says Ready or
// Go.
const (
	RecordBytes = 12
	ControlLane = 1<<32 - 1
	Ready       = 1
	Go          = 2
)

// link tells the other members of a team how far this one is, and hears from them.
type link struct {
	f     *os.File
	begin chan struct{} // closed when all are ready
	gone  chan struct{} // closed when nothing more comes
	sent  chan struct{} // closed when nothing more is sent

	mu      sync.Mutex // of what follows
	mirrors map[uint32]*mirror
	cond    sync.Cond
	out     []byte // to be sent
	ended   bool
}

// mirror is what is known here of a lane of another member.
type mirror struct {
	lane *lane // nil: it is not planned yet
	done uint64
	at   int64 // when that was heard, on clock
	// asked are tasks of which somebody wants to know when they were done.
	asked []asked
}

type asked struct {
	pos uint64
	at  *atomic.Int64
}

func newLink(f *os.File) *link {
	k := &link{f: f, begin: make(chan struct{}), gone: make(chan struct{}), sent: make(chan struct{}), mirrors: map[uint32]*mirror{}}
	k.cond.L = &k.mu
	return k
}

// run sends and receives, until the link is closed. It says so to lost.
func (k *link) run(lost func(error)) {
	go k.send(lost)
	go func() {
		err := k.receive()
		close(k.gone)
		lost(fmt.Errorf("the other members of the replay are gone: %w", err))
	}()
}

func (k *link) receive() error {
	var b [RecordBytes]byte
	for {
		if _, err := io.ReadFull(k.f, b[:]); err != nil {
			return err
		}
		slot, pos := binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint64(b[4:])
		if slot == ControlLane {
			if pos != Go {
				return errors.New("a record that makes no sense")
			}
			select {
			case <-k.begin:
				return errors.New("it was begun twice")
			default:
				close(k.begin)
			}
			continue
		}
		if slot >= maxLanes {
			return errors.New("a record of a lane that cannot be")
		}
		k.reached(slot, pos)
	}
}

// reached notes how far a lane of another member is.
func (k *link) reached(slot uint32, pos uint64) {
	now := clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.mirror(slot)
	if pos <= m.done {
		return
	}
	m.done, m.at = pos, now
	m.asked = slices.DeleteFunc(m.asked, func(a asked) bool {
		if a.pos <= pos {
			a.at.Store(now)
		}
		return a.pos <= pos
	})
	if m.lane != nil {
		m.lane.finish(pos)
	}
}

func (k *link) mirror(slot uint32) *mirror {
	m := k.mirrors[slot]
	if m == nil {
		m = &mirror{}
		k.mirrors[slot] = m
	}
	return m
}

// planned notes a task of another member; at, if not nil, is told when it was done.
func (k *link) planned(l *lane, pos uint64, at *atomic.Int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.mirror(l.slot)
	if m.lane == nil {
		m.lane = l
		if m.done > 0 {
			l.finish(m.done)
		}
	}
	switch {
	case at == nil:
	case m.done >= pos:
		at.Store(m.at)
	default:
		m.asked = append(m.asked, asked{pos, at})
	}
}

// tell sends a record.
func (k *link) tell(slot uint32, pos uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.out = binary.LittleEndian.AppendUint32(k.out, slot)
	k.out = binary.LittleEndian.AppendUint64(k.out, pos)
	k.cond.Signal()
}

func (k *link) send(lost func(error)) {
	defer close(k.sent)
	var b []byte
	for {
		k.mu.Lock()
		for len(k.out) == 0 && !k.ended {
			k.cond.Wait()
		}
		b, k.out = k.out, b[:0]
		k.mu.Unlock()
		if len(b) == 0 {
			return
		}
		if _, err := k.f.Write(b); err != nil {
			lost(fmt.Errorf("tell the other members of the replay: %w", err))
			return
		}
	}
}

// close sends what is to be sent, and ends sending: others may wait for the last of it.
func (k *link) close() {
	k.mu.Lock()
	k.ended = true
	k.cond.Signal()
	k.mu.Unlock()
	<-k.sent
}

// wants are the tasks of a lane that other members wait for.
type wants struct {
	next atomic.Uint64 // the first that is not done, or nobody
	mu   sync.Mutex
	list []uint64 // ascending
}

// want notes that another member waits for the lane's first pos tasks.
func (l *lane) tells(k *link, pos uint64) {
	w := &l.wants
	w.mu.Lock()
	if i, known := slices.BinarySearch(w.list, pos); !known {
		w.list = slices.Insert(w.list, i, pos)
		w.next.Store(w.list[0])
	}
	w.mu.Unlock()
	if done := l.done.Load(); done >= pos {
		l.tell(k, done)
	}
}

// tell tells the other members that so many tasks are done, if one of them waits for that.
func (l *lane) tell(k *link, done uint64) {
	w := &l.wants
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
		w.next.Store(nobody)
	}
	k.tell(l.slot, done)
}
