// SPDX-License-Identifier: Apache-2.0

package schedule

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

// RecordBytes is the length of the records that members of a team send each other: a slot
// (u32), and how many tasks of its queue are done (u64), both little-endian. A record of the
// slot ControlQueue is Ready or Go.
const (
	RecordBytes  = 12
	ControlQueue = 1<<32 - 1
	Ready        = 1
	Go           = 2
)

// Link sends the other members of a team how far this one's queues are, and receives how far
// theirs are.
type Link struct {
	f     *os.File
	begun chan struct{} // closed when all are ready
	gone  chan struct{} // closed when nothing more comes
	sent  chan struct{} // closed when nothing more is sent

	mu       sync.Mutex // of what follows
	mirrors  map[uint32]*remoteQueue
	cond     sync.Cond
	outgoing []byte // to be sent
	ended    bool
}

// remoteQueue is what is known here of a queue of another member.
type remoteQueue struct {
	queue *Queue // nil: it is not planned yet
	done  uint64
	at    int64 // when that was received, by the replay's clock
	// completions are tasks whose time of completion is wanted.
	completions []completion
}

type completion struct {
	pos uint64
	at  *atomic.Int64
}

// NewLink returns a link over a socket. It does nothing before Run.
func NewLink(f *os.File) *Link {
	k := &Link{
		f: f, begun: make(chan struct{}), gone: make(chan struct{}), sent: make(chan struct{}),
		mirrors: map[uint32]*remoteQueue{},
	}
	k.cond.L = &k.mu
	return k
}

// Run sends and receives, until the link is closed or fails. It calls lost with the reason.
func (k *Link) Run(lost func(error)) {
	go k.sendLoop(lost)
	go func() {
		err := k.receive()
		close(k.gone)
		lost(fmt.Errorf("the other members of the replay are gone: %w", err))
	}()
}

func (k *Link) receive() error {
	var b [RecordBytes]byte
	for {
		if _, err := io.ReadFull(k.f, b[:]); err != nil {
			return err
		}
		slot, pos := binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint64(b[4:])
		if slot == ControlQueue {
			if pos != Go {
				return errors.New("a control record of an unknown kind")
			}
			select {
			case <-k.begun:
				return errors.New("a second record to begin")
			default:
				close(k.begun)
			}
			continue
		}
		if slot >= MaxQueues {
			return fmt.Errorf("a record of slot %d, at most %d", slot, MaxQueues-1)
		}
		k.reached(slot, pos)
	}
}

// reached notes how far a queue of another member is.
func (k *Link) reached(slot uint32, pos uint64) {
	at := now()
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.mirror(slot)
	if pos <= m.done {
		return
	}
	m.done, m.at = pos, at
	m.completions = slices.DeleteFunc(m.completions, func(a completion) bool {
		if a.pos <= pos {
			a.at.Store(at)
		}
		return a.pos <= pos
	})
	if m.queue != nil {
		m.queue.reach(pos)
	}
}

func (k *Link) mirror(slot uint32) *remoteQueue {
	m := k.mirrors[slot]
	if m == nil {
		m = &remoteQueue{}
		k.mirrors[slot] = m
	}
	return m
}

// watch notes a task of another member; at, if not nil, gets the time when it was done.
func (k *Link) watch(l *Queue, pos uint64, at *atomic.Int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.mirror(l.slot)
	if m.queue == nil {
		m.queue = l
		if m.done > 0 {
			l.reach(m.done)
		}
	}
	switch {
	case at == nil:
	case m.done >= pos:
		at.Store(m.at)
	default:
		m.completions = append(m.completions, completion{pos, at})
	}
}

// send sends a record.
func (k *Link) send(slot uint32, pos uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outgoing = binary.LittleEndian.AppendUint32(k.outgoing, slot)
	k.outgoing = binary.LittleEndian.AppendUint64(k.outgoing, pos)
	k.cond.Signal()
}

func (k *Link) sendLoop(lost func(error)) {
	defer close(k.sent)
	var b []byte
	for {
		k.mu.Lock()
		for len(k.outgoing) == 0 && !k.ended {
			k.cond.Wait()
		}
		b, k.outgoing = k.outgoing, b[:0]
		k.mu.Unlock()
		if len(b) == 0 {
			return
		}
		if _, err := k.f.Write(b); err != nil {
			lost(fmt.Errorf("send to the other members of the replay: %w", err))
			return
		}
	}
}

// Close sends what is to be sent, and ends sending: others may wait for the last of it.
func (k *Link) Close() {
	k.mu.Lock()
	k.ended = true
	k.cond.Signal()
	k.mu.Unlock()
	<-k.sent
}
