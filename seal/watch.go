package seal

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// watchIdle is how long nothing may come before what waits for its order is shown: by
// then all that returned before has come, but for what a recorder was kept from writing.
const watchIdle = 200 * time.Millisecond

// Watch reads a stream as Seal does and makes no tape: it calls started with the head, again
// whenever the filter in it changes, and then seen with each event, resolved and in order, valid until it returns, and idle when
// there are no more at the moment. Of buffers only the first 64 bytes are there. It ends
// with the stream, or with what a function returned; a Read that waits then is left to
// the caller, who closes what it reads from.
func Watch(ctx context.Context, in io.Reader, started func(*trace.Head) error, seen func(*event.Event) error, idle func() error) (*Stats, error) {
	s := newSealer(nil)
	first := true
	s.watched = func(ev *event.Event) error {
		if first {
			first = false
			if err := started(s.stats.Head); err != nil {
				return err
			}
		}
		return seen(ev)
	}
	s.refiltered = func(h *trace.Head) error {
		if first {
			return nil
		}
		return started(h)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watched{s: s, ctx: ctx, idle: idle, frames: make(chan readFrame)}
	defer cancel()
	go w.read(trace.NewFrameReader(in))
	stats, err := s.read(ctx, w, &Options{})
	if w.err != nil {
		return nil, w.err
	}
	return stats, err
}

// watched has frames read ahead, to find out when none come.
type watched struct {
	s      *sealer
	ctx    context.Context
	idle   func() error
	frames chan readFrame
	offset int64
	err    error // of idle
}

type readFrame struct {
	f       trace.Frame
	payload []byte
	offset  int64
	err     error
}

// read passes frames on, up to the first error or the recording's end.
func (w *watched) read(fr *trace.FrameReader) {
	for {
		f, payload, err := fr.Next()
		select {
		case w.frames <- readFrame{f, bytes.Clone(payload), fr.Offset(), err}:
		case <-w.ctx.Done():
			return
		}
		if err != nil || f.Kind == trace.FrameEnd {
			return
		}
	}
}

// Next returns the next frame. While it waits it lets go of what is in order.
func (w *watched) Next() (trace.Frame, []byte, error) {
	select {
	case r := <-w.frames:
		return w.take(r)
	default:
	}
	for {
		if w.err = w.idle(); w.err != nil {
			return trace.Frame{}, nil, w.err
		}
		select {
		case r := <-w.frames:
			return w.take(r)
		case <-w.ctx.Done():
			w.err = w.ctx.Err()
			return trace.Frame{}, nil, w.err
		case <-time.After(watchIdle):
			if w.err = w.s.emit(^uint64(0), false); w.err != nil {
				return trace.Frame{}, nil, w.err
			}
		}
	}
}

func (w *watched) take(r readFrame) (trace.Frame, []byte, error) {
	w.offset = r.offset
	return r.f, r.payload, r.err
}

// Offset returns the position after the last frame.
func (w *watched) Offset() int64 { return w.offset }
