// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/pipe/sink"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// DefaultHoldMax is how long a recorder that does not go on holds programs (Plan.HoldMax).
const DefaultHoldMax = 5 * time.Second

// holdMax returns how long programs are held at most, 0 for ever.
func (p *Plan) holdMax() time.Duration {
	if p.HoldMax == 0 {
		return DefaultHoldMax
	}
	return max(p.HoldMax, 0)
}

// outputHoldMax is holdMax for an output that stalls. A connection has a limit of its own (give-up, docs/pipes.md),
// which counts unless another was asked for.
func (p *Plan) outputHoldMax() time.Duration {
	if p.ReaderHolds {
		return 0
	}
	if p.HoldMax == 0 && p.To != "" && p.To != "-" && len(sink.Files(p.To)) == 0 {
		return 0
	}
	return p.holdMax()
}

// patientSink writes frames to an output that may stall: a network file system, a full pipe. A frame that is not
// written after a time remains under way. Until it is written, other frames of records are dropped and counted, so
// that no program waits for the recorder. The next frame behind them tells the loss. Only one goroutine may use it
// at a time; trace.StreamWriter sees to that.
type patientSink struct {
	w    io.Writer
	most time.Duration // 0: it waits for ever
	note func(format string, args ...any)

	work    chan []byte
	done    chan error
	closing sync.Once
	buf     []byte // the frame under way
	busy    bool   // send has not waited for its end
	err     error  // of the output; final

	seq, round      uint64
	since           time.Time // of the stall
	missed          uint64    // records that the stream does not say yet are lost
	missedAt        uint64    // when the first of them was dropped, ns
	lost, lostCalls uint64    // records that the back end took for written
	owed            []owedFrame
}

// owedFrame is a frame that must not be dropped.
type owedFrame struct {
	frame   trace.Frame
	payload []byte
}

// newPatientSink returns a sink that writes to w. The caller ends it with close.
func newPatientSink(w io.Writer, most time.Duration, note func(string, ...any)) *patientSink {
	s := &patientSink{w: w, most: most, note: note, work: make(chan []byte), done: make(chan error, 1)}
	go s.run()
	return s
}

// close ends the sink's goroutine. More calls do nothing: a stream can be discarded after its end.
func (s *patientSink) close() { s.closing.Do(func() { close(s.work) }) }

// run writes what send gives it. Its thread runs before the programs, which may be waiting for it.
func (s *patientSink) run() {
	runtime.LockOSThread() // and not unlocked: the thread ends here
	const nice = -10
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, nice) // without the right to do so it goes on as it was
	for b := range s.work {
		_, err := s.w.Write(b[:trace.FrameHeaderBytes])
		if err == nil {
			_, err = s.w.Write(b[trace.FrameHeaderBytes:])
		}
		s.done <- err
	}
}

// WriteFrame implements trace.FrameSink.
func (s *patientSink) WriteFrame(f *trace.Frame, payload []byte) error {
	vital := f.Kind == trace.FrameHead || f.Kind == trace.FrameEnd
	if err := s.look(vital); err != nil {
		return err
	}
	for len(s.owed) > 0 && !s.busy {
		o := s.owed[0]
		s.owed = s.owed[1:]
		if err := s.send(&o.frame, o.payload, vital); err != nil {
			return err
		}
	}
	if s.missed > 0 && !s.busy {
		if err := s.tell(vital); err != nil {
			return err
		}
	}
	switch {
	case !s.busy:
		return s.send(f, payload, vital)
	case f.Kind == trace.FrameRecords:
		s.drop(f, payload)
	default:
		s.owed = append(s.owed, owedFrame{*f, append([]byte(nil), payload...)})
	}
	return nil
}

// look sees whether the frame under way is written.
func (s *patientSink) look(wait bool) error {
	if s.busy {
		var err error
		if wait {
			err = <-s.done
		} else {
			select {
			case err = <-s.done:
			default:
				return nil
			}
		}
		s.busy = false
		if s.err = err; err != nil {
			s.count(s.buf[trace.FrameHeaderBytes:])
		} else {
			s.note("the output goes on, after %s: %d records were lost", time.Since(s.since).Round(time.Second/10),
				s.missed)
		}
	}
	return s.err
}

// send writes a frame. Without vital it waits no longer than it may.
func (s *patientSink) send(f *trace.Frame, payload []byte, vital bool) error {
	own := *f
	own.Seq = s.seq
	s.seq++
	if own.Kind == trace.FrameRecords {
		s.round = uint64(own.Round)
	}
	var head [trace.FrameHeaderBytes]byte
	own.Put(head[:], payload)
	s.buf = append(append(s.buf[:0], head[:]...), payload...)
	s.work <- s.buf
	if vital || s.most <= 0 {
		s.err = <-s.done
		return s.err
	}
	since := time.Now()
	timer := time.NewTimer(s.most)
	defer timer.Stop()
	select {
	case s.err = <-s.done:
		return s.err
	case <-timer.C:
	}
	s.busy, s.since = true, since
	s.note("the output has accepted nothing for %s: the programs go on, and what they do is counted as lost",
		s.most)
	return nil
}

// drop counts a frame that is not written.
func (s *patientSink) drop(f *trace.Frame, payload []byte) {
	if s.missed == 0 {
		now, _ := capture.Clocks()
		s.missedAt = uint64(now)
	}
	s.missed += s.count(payload) + f.Lost
}

// count counts the records of a payload as lost.
func (s *patientSink) count(payload []byte) (records uint64) {
	for body, err := range trace.Records(payload) {
		if err != nil {
			break
		}
		records++
		if trace.TypeOf(body) == trace.RecCall {
			s.lostCalls++
		}
	}
	s.lost += records
	return records
}

// tell writes how many records were dropped.
func (s *patientSink) tell(vital bool) error {
	loss := trace.Record{Type: trace.RecLoss, Exit: s.missedAt, Count: s.missed, Reason: trace.LossStalled}
	s.missed = 0
	// The frame belongs to the round before, as a note does: readers still wait for what has happened before.
	return s.send(&trace.Frame{Kind: trace.FrameRecords, Round: uint32(s.round)}, trace.AppendRecord(nil, &loss), vital)
}

// settle waits until the frame under way is written, and counts what was lost in the result of a recording that has
// ended.
func (s *patientSink) settle(res *capture.Result) {
	if s.busy {
		s.note("the output still accepts nothing: iotape waits for it; to give up, kill iotape (SIGKILL), " +
			"then run iotape repair")
	}
	err := s.look(true)
	if res == nil {
		return
	}
	res.Lost += s.lost
	res.Events -= min(s.lostCalls, res.Events)
	if err != nil && res.WriteErr == nil {
		res.WriteErr = fmt.Errorf("write stream: %w", err)
	}
}
