package flight

import (
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"iotape/trace"
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
	frames := append([]*frame(nil), r.ring.frames...)
	head, end := *r.head, r.end
	d := &Dump{Calls: r.calls.Load(), Ended: end != nil, Back: r.back()}
	r.dumping, r.dumped = true, r.ring.tail()
	r.mu.Unlock()
	r.state.Unlock()
	defer func() {
		r.mu.Lock()
		r.dumping = false
		r.cond.Broadcast()
		r.mu.Unlock()
	}()

	head.Window = &trace.Window{SinceNS: int64(since), Reason: reason}
	sw, err := trace.NewStreamWriter(w, id, &head)
	if err != nil {
		return nil, err
	}
	if len(state) > 0 {
		f := trace.Frame{Shard: uint32(head.Shards), Until: since}
		if len(frames) > 0 {
			f.Round = frames[0].Round
		}
		if err := writeState(sw, f, state); err != nil {
			return nil, err
		}
	}
	for _, f := range frames {
		if err := sw.WriteRecords(f.Frame, r.ring.payload(f)); err != nil {
			return nil, err
		}
		r.mu.Lock()
		r.dumped = f.end()
		r.cond.Broadcast()
		r.mu.Unlock()
	}
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

// writeState writes the state's records, in frames of a good size.
func writeState(sw *trace.StreamWriter, f trace.Frame, state []byte) error {
	start := 0
	for off := 0; off < len(state); {
		_, next, err := trace.NextRecord(state, off)
		if err != nil {
			return err
		}
		if next-start > trace.MaxFrameBytes/2 {
			if err := sw.WriteRecords(f, state[start:off]); err != nil {
				return err
			}
			start = off
		}
		off = next
	}
	return sw.WriteRecords(f, state[start:])
}

// clocks reads the monotonic clock and the wall clock at one moment, in ns.
func clocks() (clock, wall int64) {
	var m, w unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &m)
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &w)
	return m.Nano(), w.Nano()
}
