// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

const (
	// MinBytes is the least that a Recorder keeps: some of the largest records.
	MinBytes = 16 << 20
	// DefaultBytes is what it keeps if it is only told a time.
	DefaultBytes = 256 << 20

	// slackBytes is memory beyond what is to be kept, so that what falls out can be
	// applied while the recording goes on.
	slackBytes = 8 << 20
	// blockBytes is about the largest frame in memory; larger ones are divided.
	blockBytes = 1 << 20
)

// Options say what a Recorder keeps. One of Bytes and Age is enough.
type Options struct {
	Bytes    int64         // of records, at least MinBytes; 0 is DefaultBytes
	Age      time.Duration // at least so long, as far as Bytes allows; 0 is no limit
	Triggers []Trigger
	// Triggered is told when a call matches a trigger, or a program crashes; after
	// that, of neither until Arm. It must not block, nor call the Recorder.
	Triggered func(Cause)
}

// Cause is why a dump is wanted.
type Cause struct {
	Reason string
	Crash  bool // of a program, else what a call did
}

// Recorder keeps the last frames of a recording. It is a trace.FrameSink. WriteFrame
// is called by one goroutine at a time; all else may be called from anywhere.
type Recorder struct {
	o       Options
	calls   atomic.Uint64
	asleep  [2]atomic.Bool // not to be triggered by calls; by crashes
	ignored atomic.Uint64  // triggers meanwhile

	state    sync.Mutex // follower; taken before mu
	follower *seal.Follower

	mu      sync.Mutex
	cond    sync.Cond
	ring    *ring
	head    *trace.Head
	end     *trace.End
	clock   uint64 // ns; the latest Until
	since   uint64 // ns; that of the last frame that was forgotten, or the start
	next    int    // of ring.frames, the first that the follower has not
	dumping bool
	dumped  uint64 // while dumping: position up to which frames are written
	need    int    // bytes that WriteFrame waits for room for; 0 if it does not
	err     error
	closed  bool

	dumps sync.Mutex // one at a time
	done  chan struct{}
}

var _ trace.FrameSink = (*Recorder)(nil)

// New returns a Recorder that keeps what o says. Close frees its memory.
func New(o *Options) (*Recorder, error) {
	with := *o
	if with.Bytes == 0 {
		with.Bytes = DefaultBytes
	}
	if with.Bytes < MinBytes {
		return nil, fmt.Errorf("a flight recorder keeps %d MiB or more", MinBytes>>20)
	}
	return start(&with)
}

func start(o *Options) (*Recorder, error) {
	r := &Recorder{o: *o, done: make(chan struct{})}
	r.cond.L = &r.mu
	var err error
	if r.ring, err = newRing(r.o.Bytes + slackBytes); err != nil {
		return nil, err
	}
	r.follower = seal.NewFollower(r.applied)
	go r.evict()
	return r, nil
}

// errClosed is returned for use after Close.
var errClosed = errors.New("flight recorder is closed")

// Close ends the Recorder when no dump is under way.
func (r *Recorder) Close() error {
	r.dumps.Lock()
	defer r.dumps.Unlock()
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	r.cond.Broadcast()
	r.mu.Unlock()
	<-r.done
	return r.ring.close()
}

// WriteFrame takes a frame of the recording. It waits while there is no room.
func (r *Recorder) WriteFrame(f *trace.Frame, payload []byte) error {
	switch f.Kind {
	case trace.FrameHead:
		h, err := trace.ReadHead(payload)
		if err == nil {
			r.mu.Lock()
			r.head, r.since = h, uint64(max(h.ClockNS, 0))
			r.mu.Unlock()
		}
		return err
	case trace.FrameEnd:
		e, err := trace.ReadEnd(payload)
		if err == nil {
			r.mu.Lock()
			r.end = e
			r.mu.Unlock()
		}
		return err
	case trace.FrameRecords:
	default:
		return nil
	}
	block, lost := 0, f.Lost
	for off := 0; off < len(payload); {
		body, next, err := trace.NextRecord(payload, off)
		if err != nil {
			return err
		}
		if next-block > blockBytes && off > block {
			if err := r.add(f, lost, payload[block:off]); err != nil {
				return err
			}
			block, lost = off, 0
		}
		r.inspect(body)
		off = next
	}
	return r.add(f, lost, payload[block:])
}

// inspect counts a call, and reports what matches a trigger.
func (r *Recorder) inspect(body []byte) {
	c, ok := readCall(body)
	if !ok {
		return
	}
	if c.typ == trace.RecCall {
		r.calls.Add(1)
	}
	if r.o.Triggered == nil || !c.matches(r.o.Triggers) {
		return
	}
	if crash := c.typ == trace.RecExit; r.gate(crash).Swap(true) {
		r.ignored.Add(1)
	} else {
		r.o.Triggered(Cause{Reason: c.reason(), Crash: crash})
	}
}

func (r *Recorder) gate(crash bool) *atomic.Bool {
	if crash {
		return &r.asleep[1]
	}
	return &r.asleep[0]
}

// Arm lets the next call that matches, or the next crash, be told of again.
func (r *Recorder) Arm(crash bool) { r.gate(crash).Store(false) }

// Ignored returns how many calls matched, or programs crashed, without being told of.
func (r *Recorder) Ignored() uint64 { return r.ignored.Load() }

// add puts a frame into memory.
func (r *Recorder) add(f *trace.Frame, lost uint64, payload []byte) error {
	e := &frame{Frame: *f, n: len(payload)}
	e.Lost = lost
	r.mu.Lock()
	for {
		if r.err != nil || r.closed {
			defer r.mu.Unlock()
			if r.err == nil {
				return errClosed
			}
			return r.err
		}
		var ok bool
		if e.at, ok = r.ring.place(e.n); ok {
			break
		}
		r.need = e.n
		r.cond.Broadcast()
		r.cond.Wait()
	}
	r.need = 0
	to := r.ring.bytes(e.at, e.n)
	r.mu.Unlock()
	copy(to, payload) // nobody else looks there
	r.mu.Lock()
	r.ring.add(e)
	r.clock = max(r.clock, f.Until)
	if r.over() {
		r.cond.Broadcast()
	}
	r.mu.Unlock()
	return nil
}

// over reports whether there is more in memory than is to be kept.
func (r *Recorder) over() bool {
	if r.short() || r.ring.used > uint64(r.o.Bytes) {
		return true
	}
	if r.o.Age == 0 || r.next >= len(r.ring.frames) {
		return false
	}
	return r.ring.frames[r.next].Until+uint64(r.o.Age) < r.clock
}

// short reports whether WriteFrame waits, and in vain so far.
func (r *Recorder) short() bool {
	if r.need == 0 {
		return false
	}
	_, ok := r.ring.place(r.need)
	return !ok
}

// evict applies what is not to be kept to the state, and frees its memory. It
// is a goroutine.
func (r *Recorder) evict() {
	defer close(r.done)
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed && r.err == nil {
		var f *frame
		if r.over() && r.next < len(r.ring.frames) {
			f = r.ring.frames[r.next]
		}
		switch {
		case f == nil && r.short() && r.next > 0 && !r.dumping:
			// All of memory waits for its order: the oldest has to go as it is.
			end := r.ring.frames[0].end()
			r.mu.Unlock()
			err := r.flush(end)
			r.mu.Lock()
			r.fail(err)
		case f != nil && (!r.dumping || f.end() <= r.dumped):
			r.mu.Unlock()
			err := r.apply(f)
			r.mu.Lock()
			r.fail(err)
		default:
			r.cond.Wait()
			continue
		}
		r.release()
	}
}

// apply gives a frame's records to the follower.
func (r *Recorder) apply(f *frame) error {
	r.state.Lock()
	defer r.state.Unlock()
	r.mu.Lock()
	if r.dumping && f.end() > r.dumped { // a dump began meanwhile
		r.mu.Unlock()
		return nil
	}
	r.next++
	r.mu.Unlock()
	n, err := r.follower.Frame(&f.Frame, r.ring.payload(f), f.at)
	f.live += n
	f.applied = true
	return err
}

// flush applies all records before a position, in the order of their times so far.
func (r *Recorder) flush(end uint64) error {
	r.state.Lock()
	defer r.state.Unlock()
	r.mu.Lock()
	dumping := r.dumping // a dump began meanwhile
	r.mu.Unlock()
	if dumping {
		return nil
	}
	return r.follower.Flush(end)
}

// applied is told that an event was applied: its record is not to be in a dump. It
// runs within the follower's methods.
func (r *Recorder) applied(at uint64) {
	r.mu.Lock()
	f := r.ring.of(at)
	r.mu.Unlock()
	f.live--
	trace.Discard(r.ring.payload(f), int(at-f.at))
}

// release frees the oldest frames that nobody needs.
func (r *Recorder) release() {
	n := 0
	for r.next > 0 && r.ring.frames[0].applied && r.ring.frames[0].live == 0 {
		r.since = r.ring.frames[0].Until
		r.ring.drop()
		r.next--
		n++
	}
	if n > 0 {
		r.cond.Broadcast()
	}
}

func (r *Recorder) fail(err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("flight recorder: %w", err)
		r.cond.Broadcast()
	}
}

// Calls returns how many calls were recorded so far.
func (r *Recorder) Calls() uint64 { return r.calls.Load() }

// Held returns what is in memory: bytes, and how far back it goes.
func (r *Recorder) Held() (n int64, back time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(r.ring.used), r.back()
}

func (r *Recorder) back() time.Duration { return time.Duration(r.clock - min(r.clock, r.since)) }

// Ended reports whether the recording ended.
func (r *Recorder) Ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end != nil
}
