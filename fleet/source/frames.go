// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/fleet/agent"
	"github.com/iotape/iotape/trace"
)

// countEvery is how often counters are written at the lowest level.
const countEvery = 10 * time.Second

// frames hands the frames of a stream to an agent. It is a trace.FrameSink.
type frames struct {
	ctx   context.Context
	out   agent.Sink
	seq   uint64
	owed  map[uint32]uint64 // events that were not taken, by reason, and not yet declared
	count map[uint16]uint64 // nil, or: count operations in place of keeping records
	since time.Time
	lost  uint64 // in all
	rings uint64 // of these, in the capture's rings
	own   []byte
}

func newFrames(ctx context.Context, out agent.Sink, level agent.Level) *frames {
	f := &frames{ctx: ctx, out: out, owed: map[uint32]uint64{}, since: time.Now()}
	if level == agent.Counters {
		f.count = map[uint16]uint64{}
	}
	return f
}

// WriteFrame takes a frame. What the agent has no room for is no error: it is lost,
// and declared in the stream before what is next taken.
func (f *frames) WriteFrame(fr *trace.Frame, payload []byte) error {
	if fr.Kind != trace.FrameRecords {
		if fr.Kind == trace.FrameEnd {
			f.settle(fr)
		}
		return f.control(*fr, payload)
	}
	if fr.Lost > 0 {
		f.lost += fr.Lost
		f.rings += fr.Lost
		f.out.Lost(trace.LossReason(trace.LossRing), fr.Lost)
	}
	events, err := f.records(payload)
	if err != nil {
		return err
	}
	if f.count != nil {
		f.out.Lost(trace.LossReason(trace.LossCounted), events)
		f.owed[trace.LossCounted] += events
		f.owed[trace.LossRing] += fr.Lost
		f.lost += events
		if time.Since(f.since) >= countEvery {
			f.settle(fr)
		}
		return nil
	}
	f.declare(fr)
	if taken, _ := f.put(*fr, payload, events); !taken {
		f.owed[trace.LossSpool] += events
		f.owed[trace.LossRing] += fr.Lost // the frame would have said so
		f.lost += events
	}
	return nil
}

// records counts those of a payload that were not discarded.
func (f *frames) records(payload []byte) (n uint64, err error) {
	for off := 0; off < len(payload); {
		body, next, err := trace.NextRecord(payload, off)
		if err != nil {
			return n, err
		}
		if off = next; body == nil {
			continue
		}
		n++
		if f.count != nil && len(body) >= 4 && trace.TypeOf(body) == trace.RecCall {
			f.count[binary.LittleEndian.Uint16(body[2:])]++
		}
	}
	return n, nil
}

// put numbers a frame and hands it over.
func (f *frames) put(fr trace.Frame, payload []byte, events uint64) (bool, string) {
	fr.Seq = f.seq
	var h [trace.FrameHeaderBytes]byte
	fr.Put(h[:], payload)
	taken, why := f.out.Put(h[:], payload, events)
	if taken {
		f.seq++
	}
	return taken, why
}

// control hands over a frame without events, which may have to wait for room.
func (f *frames) control(fr trace.Frame, payload []byte) error {
	for {
		if taken, _ := f.put(fr, payload, 0); taken {
			return nil
		}
		select {
		case <-f.ctx.Done():
			return nil // the stream's end says that it is not whole
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// declare writes what was lost since the last frame that was taken. If there is no room
// for that either, it stays owed.
func (f *frames) declare(fr *trace.Frame) {
	for reason, n := range f.owed {
		if n == 0 {
			continue
		}
		f.own = trace.AppendRecord(f.own[:0],
			&trace.Record{Type: trace.RecLoss, Exit: fr.Until, Count: n, Reason: reason})
		if taken, _ := f.put(trace.Frame{Kind: trace.FrameRecords, Stream: fr.Stream, Shard: fr.Shard, Round: fr.Round,
			Until: fr.Until}, f.own, 0); !taken {
			return
		}
		f.owed[reason] = 0
	}
}

// settle writes the counters, if these are all that is kept, and the losses that are owed.
func (f *frames) settle(fr *trace.Frame) {
	f.since = time.Now()
	if len(f.count) > 0 {
		names := map[string]uint64{}
		for op, n := range f.count {
			names[event.Op(op).String()] = n
		}
		if payload, err := trace.EncodeCounters(names); err == nil {
			if taken, _ := f.put(trace.Frame{Kind: trace.FrameCounters, Stream: fr.Stream}, payload, 0); taken {
				clear(f.count)
			}
		}
	}
	f.declare(fr)
}
