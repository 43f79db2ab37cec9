// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/trace"
)

// Dump says what a dump holds.
type Dump struct {
	Bytes int64         // of the stream
	Calls uint64        // recorded before it was made
	Back  time.Duration // how far it goes back
	Ended bool          // the recording had ended: nothing comes after it
}

// errEmpty is returned for a dump before the recording has begun.
var errEmpty = errors.New("nothing is recorded yet")

// Dump writes what is in memory now as a stream. The recording goes on meanwhile.
// reason goes into the stream's head, id is the stream's and should be random.
func (r *Recorder) Dump(w io.Writer, id uint64, reason string) (*Dump, error) {
	var sw *trace.StreamWriter
	s, err := r.replay(func(s *State) (write func(trace.Frame, []byte) error, err error) {
		head := *s.Head
		head.Window = &trace.Window{SinceNS: s.SinceNS, Reason: reason}
		if sw, err = trace.NewStreamWriter(w, id, &head); err != nil {
			return nil, err
		}
		return sw.WriteRecords, nil
	})
	if err != nil {
		return nil, err
	}
	d := &Dump{Calls: s.calls, Ended: s.end != nil, Back: s.back}
	end := s.end
	if end == nil {
		end = &trace.End{Running: true}
		end.ClockNS, end.WallNS = clocks()
	}
	if err := sw.Close(end); err != nil {
		return nil, err
	}
	d.Bytes = sw.Bytes()
	return d, nil
}

// State is what a Recorder knows at a moment.
type State struct {
	Head    *trace.Head // of the recording
	SinceNS int64       // monotonic time of the state that the frames begin with

	end   *trace.End // nil: the recording goes on
	calls uint64
	back  time.Duration
}

// Replay gives what is in memory now to a function, as frames of records: the state that
// they begin with, then those that are kept. A stream that begins with them, and goes on
// with what WriteFrame takes after that, is whole. Payloads are only valid in the function.
func (r *Recorder) Replay(begin func(*State) (write func(trace.Frame, []byte) error, err error)) error {
	_, err := r.replay(begin)
	return err
}

func (r *Recorder) replay(begin func(*State) (func(trace.Frame, []byte) error, error)) (*State, error) {
	r.dumps.Lock()
	defer r.dumps.Unlock()

	r.state.Lock()
	state := r.follower.AppendState(nil)
	since := r.follower.Time()
	r.mu.Lock()
	if r.closed || r.head == nil {
		r.mu.Unlock()
		r.state.Unlock()
		return nil, errEmpty
	}
	r.release() // now, since evict may free such frames while they are being written
	frames := append([]*frame(nil), r.ring.frames...)
	s := &State{Head: r.head, SinceNS: int64(since), calls: r.calls.Load(), end: r.end, back: r.back()}
	r.dumping, r.dumped = true, r.ring.tail()
	r.mu.Unlock()
	r.state.Unlock()
	defer func() {
		r.mu.Lock()
		r.dumping = false
		r.cond.Broadcast()
		r.mu.Unlock()
	}()

	write, err := begin(s)
	if err != nil {
		return nil, err
	}
	if len(state) > 0 {
		f := trace.Frame{Shard: uint32(s.Head.Shards), Until: since}
		if len(frames) > 0 {
			f.Round = frames[0].Round
		}
		if err := writeState(write, f, state); err != nil {
			return nil, err
		}
	}
	for _, f := range frames {
		if err := write(f.Frame, r.ring.payload(f)); err != nil {
			return nil, err
		}
		r.mu.Lock()
		r.dumped = f.end()
		r.cond.Broadcast()
		r.mu.Unlock()
	}
	return s, nil
}

// writeState writes the state's records, in frames of a good size.
func writeState(write func(trace.Frame, []byte) error, f trace.Frame, state []byte) error {
	start := 0
	for off := 0; off < len(state); {
		_, next, err := trace.NextRecord(state, off)
		if err != nil {
			return err
		}
		if next-start > trace.MaxFrameBytes/2 {
			if err := write(f, state[start:off]); err != nil {
				return err
			}
			start = off
		}
		off = next
	}
	return write(f, state[start:])
}

// clocks reads the monotonic clock and the wall clock at one moment, in ns.
func clocks() (clock, wall int64) {
	var m, w unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &m)
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &w)
	return m.Nano(), w.Nano()
}
