// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// Watch reads the stream of a recording while it is made, to its end, and may call stop to end the recording: the
// recorded programs go on. What it leaves unread holds the recording up. After its error nothing reads on, and the
// recording continues, unless it is not kept. The stream is cut off if the recording could not begin, or not end.
type Watch func(ctx context.Context, stream io.Reader, stop func()) error

// limiter ends a recording at a limit, but not before it has begun.
type limiter struct {
	stop    func()
	started func(pid int) // of the capture's options; may be nil
	pid     atomic.Int64  // of the command; 0 until it runs, and without one

	mu             sync.Mutex
	begun, reached bool
}

// begin is capture.Options.Started.
func (l *limiter) begin(pid int) {
	l.pid.Store(int64(pid))
	if l.started != nil {
		l.started(pid)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun = true; l.reached {
		l.stop()
	}
}

// reach is called at the limit, from any goroutine.
func (l *limiter) reach() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reached = true; l.begun {
		l.stop()
	}
}

// tee passes a stream on to a Watch. It begins it when more than the head is written, so that one that a back end could
// not record is not seen.
type tee struct {
	w     io.Writer // the stream's own
	watch Watch
	vital bool // without the watch there is nothing to record for
	stop  func()
	held  []byte // the head frame: its header and its payload
	parts int    // of it
	n     uint64 // bytes of the stream
	limit uint64 // of them, after which stop is called; 0: none
	pipe  *io.PipeWriter
	done  chan error
}

// Write implements io.Writer. Its error is that of the stream's own writer.
func (t *tee) Write(b []byte) (int, error) {
	n, err := t.w.Write(b)
	if t.n += uint64(n); t.limit > 0 && t.n >= t.limit {
		t.limit = 0
		t.stop()
	}
	if err != nil || t.watch == nil {
		return n, err
	}
	if t.parts++; t.parts <= 2 {
		t.held = append(t.held, b...)
		return n, nil
	}
	if t.pipe == nil {
		t.begin()
	}
	_, _ = t.pipe.Write(b) // the watch has ended: done says why
	return n, nil
}

func (t *tee) begin() {
	r, w := io.Pipe()
	t.pipe, t.done = w, make(chan error, 1)
	go func() {
		err := t.watch(context.Background(), r, t.stop)
		r.Close() // of one that stopped early
		if err != nil && t.vital {
			t.stop()
		}
		t.done <- err
	}()
	_, _ = w.Write(t.held)
	t.held = nil
}

// finish waits until the watch has seen all, and returns its error. Nothing is written after it.
func (t *tee) finish() error {
	if t.pipe == nil {
		return nil
	}
	t.pipe.Close()
	return <-t.done
}
