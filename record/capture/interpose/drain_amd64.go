// SPDX-License-Identifier: Apache-2.0

package interpose

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/iotape/iotape/record/internal/bpf"
	"github.com/iotape/iotape/trace"
)

const (
	pollMin = time.Millisecond // between two looks at busy rings
	pollMax = 20 * time.Millisecond
	// busyBytes is what comes into a ring between two looks for it to be busy.
	busyBytes = ringBytes / 16
	// clockMargin is how much later than its clock reading a thread's state may be seen: far
	// more than a processor's store buffer.
	clockMargin = 10_000 // ns
)

// ringState is a ring that is drained.
type ringState struct {
	slot     *slot
	mem      []byte
	pid, tid uint32
	tail     uint64
	broken   bool // the program wrote over it
}

// run drains until stop is closed.
func (s *session) run(stop <-chan struct{}) {
	pause := pollMax
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			s.pass()
			return
		case <-timer.C:
		}
		if s.pass() > busyBytes {
			pause = pollMin
		} else {
			pause = min(pause*5/4+pollMin, pollMax)
		}
		timer.Reset(pause)
	}
}

// recordedUntil is the time now, or, if a thread has returned from a call that is not in its ring yet, when that began.
func (s *session) recordedUntil() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notBehind(bpf.Now()) + 1 // behind what pass has drained until
}

// notBehind returns a time that is not behind the beginning of a call that has returned and is not in its ring yet.
func (s *session) notBehind(at uint64) uint64 {
	for _, r := range s.rings {
		if atomic.LoadUint64(&r.slot.State) == stateAfter {
			at = min(at, s.timer.ns(r.slot.Enter))
		}
	}
	return at
}

// pass drains all rings once. It returns the bytes of the fullest.
func (s *session) pass() (most uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return 0
	}
	until := min(bpf.Now()-clockMargin, s.rec.HandledUntil())
	k := s.timer.renew()
	until = s.notBehind(until)
	for th := range s.rings {
		th.space.arena.control().publish(k)
	}
	for _, r := range s.rings {
		most = max(most, s.take(r))
	}
	s.rec.Append(nil, 0, until)
	return most
}

// drain takes what a thread has recorded, before something else is written of it.
func (s *session) drain(th *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = true
	if r := s.rings[th]; r != nil {
		s.take(r)
	}
}

// take moves a ring's records to the stream.
func (s *session) take(r *ringState) (moved uint64) {
	head := atomic.LoadUint64(&r.slot.Head)
	if r.broken || head == r.tail {
		return 0
	}
	if head-r.tail > ringBytes || head%8 != 0 {
		s.fail(r)
		return 0
	}
	for r.tail != head {
		lap, end := r.tail/ringBytes, head
		if head/ringBytes != lap {
			end = lap*ringBytes + r.slot.LapEnd[lap&1]
		}
		if end < r.tail || end-lap*ringBytes > ringBytes {
			s.fail(r)
			return moved
		}
		part := r.mem[r.tail%ringBytes:][:end-r.tail]
		// A copy: the program can write into its ring.
		s.spare = append(s.spare[:0], part...)
		n, ok := r.count(s.spare)
		if !ok {
			s.fail(r)
			return moved
		}
		s.rec.Append(s.spare, n, 0)
		moved += uint64(len(part))
		if r.tail = end; head/ringBytes != lap {
			r.tail = (lap + 1) * ringBytes
		}
		atomic.StoreUint64(&r.slot.Tail, r.tail)
	}
	return moved
}

// count counts the records of a part of a ring, and checks that they are the thread's calls.
func (r *ringState) count(b []byte) (n uint64, ok bool) {
	const head = trace.WordBytes + 16
	for len(b) > 0 {
		if len(b) < head {
			return n, false
		}
		size := binary.LittleEndian.Uint64(b)
		b = b[trace.WordBytes:]
		if size > uint64(len(b)) || size%8 != 0 || size < 16 {
			return n, false
		}
		le := binary.LittleEndian
		if le.Uint16(b) != uint16(trace.RecCall) || le.Uint32(b[4:]) != r.pid || le.Uint32(b[8:]) != r.tid {
			return n, false
		}
		b = b[size:]
		n++
	}
	return n, true
}

// fail gives up a ring that the program wrote over, and says so in the trace.
func (s *session) fail(r *ringState) {
	r.broken = true
	loss := trace.Record{Type: trace.RecLoss, PID: r.pid, TID: r.tid, Exit: bpf.Now(), Count: 1,
		Reason: trace.LossPartial}
	s.rec.Append(trace.AppendRecord(nil, &loss), 0, 0)
}

// ns converts a reading of the time stamp counter.
func (s *session) ns(counter uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timer.ns(counter)
}
