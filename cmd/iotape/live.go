package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// sealWhen is when a recording is made a tape.
type sealWhen string

const (
	sealAfter sealWhen = "after" // the command has ended
	sealLive  sealWhen = "live"  // while it runs, too
	sealNever sealWhen = "never" // somebody does it later
)

func parseSealWhen(s string) (sealWhen, error) {
	switch w := sealWhen(s); w {
	case sealAfter, sealLive, sealNever:
		return w, nil
	}
	return "", fmt.Errorf("--seal %s: it is live, after or never", s)
}

// live seals a stream that is still being written. The stream stays whole: if iotape
// is killed, it is sealed from its beginning.
type live struct {
	sealing *sealing
	tail    *tail
	cancel  context.CancelFunc
	ended   sync.WaitGroup
	tape    *unfinished
	err     error
}

// start begins to seal what is in the stream. It returns at once.
func (l *live) start() {
	if l.tail != nil {
		return
	}
	l.tail = &tail{closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.ended.Go(func() { l.err = l.run(ctx) })
}

func (l *live) run(ctx context.Context) (err error) {
	if l.tail.f, err = os.Open(l.sealing.stream); err != nil {
		return err
	}
	defer l.tail.f.Close()
	if l.tape, err = l.sealing.begin(ctx); err != nil {
		return err
	}
	return l.tape.seal(ctx, l.tail, nil)
}

// end waits until the whole stream is sealed. The tape is nil if sealing has not
// begun.
func (l *live) end() (*unfinished, error) {
	if l.tail == nil {
		return nil, nil
	}
	close(l.tail.closed)
	l.ended.Wait()
	l.cancel()
	l.tail = nil
	if l.err != nil {
		l.abandon()
		return nil, l.err
	}
	return l.tape, nil
}

// abandon stops, and leaves nothing but the stream.
func (l *live) abandon() {
	if l.tail != nil {
		l.cancel()
		close(l.tail.closed)
		l.ended.Wait()
		l.tail = nil
	}
	if l.tape != nil {
		l.tape.abandon()
		l.tape = nil
	}
}

// sealed makes the tape, or what is left to do of it.
func (s *sealing) sealed(ctx context.Context, c *console, l *live) (*sealed, error) {
	ended := time.Now()
	u, err := l.end()
	if err != nil {
		c.say("sealing while recording failed, and begins anew: %v", err)
	}
	if u == nil {
		return s.run(ctx, c)
	}
	defer u.abandon()
	u.start = ended
	return u.finish(ctx, c)
}

// tail reads a file that grows, to its end when that is known.
type tail struct {
	f      *os.File
	off    int64
	closed chan struct{} // there will be no more
}

// tailPause is how long a reader that has caught up leaves the writer alone: sealing
// in larger parts costs less.
const tailPause = 20 * time.Millisecond

// Read waits for what is not written yet.
func (t *tail) Read(b []byte) (int, error) {
	for last := false; ; {
		n, err := t.f.ReadAt(b, t.off)
		t.off += int64(n)
		if n > 0 {
			return n, nil
		}
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
		if last {
			return 0, io.EOF
		}
		select {
		case <-t.closed:
			last = true
		case <-time.After(tailPause):
		}
	}
}
