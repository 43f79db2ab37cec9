// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/trace"
)

// watchIdle is how long nothing may come before what waits for its order is shown: by
// then all that returned before has come, but for what a recorder was kept from writing.
const watchIdle = 200 * time.Millisecond

// Viewer is told what Watch reads.
type Viewer struct {
	// Started gets the head, before the first event and whenever the filter in it changes.
	Started func(*trace.Head) error
	// Seen gets each event, resolved and in order, valid until it returns. Of buffers only the first 64 bytes are
	// there.
	Seen func(*event.Event) error
	// Idle is called when there are no more events at the moment.
	Idle func() error
	// Quiet is how long nothing may come before what waits for its order is shown. It has to be longer than the
	// stream's writer leaves between two frames while there are events. 0 is 200 ms.
	Quiet time.Duration
	// Files is as in Options.
	Files posix.FileSystem
	// Local is as in Options.
	Local bool
}

// Watch reads a stream as Seal does and makes no tape. It ends with the stream, or with
// the first error of the viewer; a Read that waits then is left to the caller, who closes
// what it reads from.
func Watch(ctx context.Context, in io.Reader, v *Viewer) (*Stats, error) {
	stats := newStats()
	s := newStream(&viewer{started: v.Started, seen: v.Seen, stats: stats}, stats)
	s.ask(v.Files, v.Local)
	ctx, cancel := context.WithCancel(ctx)
	w := &awaited{
		idle: v.Idle, within: cmp.Or(v.Quiet, watchIdle), ctx: ctx, frames: make(chan readFrame),
		quiet: func() error { return s.assembler.emit(^uint64(0), false) },
	}
	defer cancel()
	go w.read(trace.NewFrameReader(in))
	err := s.read(ctx, w, nil)
	if err = cmp.Or(w.err, err); err != nil {
		return nil, err
	}
	return stats, nil
}

// viewer is the sink that shows events. It keeps no content but what stands in them.
type viewer struct {
	noContent
	started func(*trace.Head) error
	seen    func(*event.Event) error
	stats   *Stats
	any     bool   // an event was seen
	next    uint64 // number of the next one
}

var _ streamSink = (*viewer)(nil)

// head does nothing: started is told with the first event.
func (v *viewer) head(*trace.Head) error { return nil }

func (v *viewer) filterChanged(h *trace.Head) error {
	if !v.any {
		return nil
	}
	return v.started(h)
}

func (v *viewer) event(it *item, _ []event.OpenID) error {
	it.ev.Seq = v.next
	v.next++
	v.stats.count(&it.ev)
	if !v.any {
		v.any = true
		if err := v.started(v.stats.Head); err != nil {
			return err
		}
	}
	return v.seen(&it.ev)
}

// add keeps the first bytes of a large buffer.
func (v *viewer) add(b *event.Buf, base int64, p *trace.Piece) error {
	if isInline(b, p) { // what comes before it is missing
		return v.spill(b, base)
	}
	b.Inline = append(b.Inline, p.Data[:min(len(p.Data), max(maxInline-len(b.Inline), 0))]...)
	return nil
}

// awaited has frames read ahead, to find out when none come.
type awaited struct {
	ctx    context.Context
	idle   func() error
	within time.Duration
	quiet  func() error // nothing came for so long
	frames chan readFrame
	offset int64
	err    error // of idle or quiet
}

type readFrame struct {
	f       trace.Frame
	payload []byte
	offset  int64
	err     error
}

// read passes frames on, up to the first error or the recording's end.
func (w *awaited) read(fr *trace.FrameReader) {
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
func (w *awaited) Next() (trace.Frame, []byte, error) {
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
		case <-time.After(w.within):
			if w.err = w.quiet(); w.err != nil {
				return trace.Frame{}, nil, w.err
			}
		}
	}
}

func (w *awaited) take(r readFrame) (trace.Frame, []byte, error) {
	w.offset = r.offset
	return r.f, r.payload, r.err
}

// Offset returns the position after the last frame.
func (w *awaited) Offset() int64 { return w.offset }
