// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// Live seals a stream that is still being written. The stream stays whole: if the program
// is killed, it can be sealed from its beginning.
type Live struct {
	job     *Job
	growing *Growing
	cancel  context.CancelFunc
	ended   sync.WaitGroup
	tape    *Unfinished
	err     error
}

// NewLive returns a Live that has not begun.
func NewLive(j *Job) *Live { return &Live{job: j} }

// Start begins to seal what is in the stream. It returns at once; the file must be there.
// Called again, it does nothing.
func (l *Live) Start() error {
	if l.growing != nil {
		return nil
	}
	f, err := os.Open(l.job.Stream)
	if err != nil {
		return err
	}
	l.growing = NewGrowing(f)
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.ended.Go(func() {
		defer f.Close()
		l.err = l.run(ctx)
	})
	return nil
}

func (l *Live) run(ctx context.Context) (err error) {
	if l.tape, err = l.job.Begin(ctx); err != nil {
		return err
	}
	return l.tape.Seal(ctx, l.growing, nil)
}

// end waits until the whole stream is sealed. The tape is nil if sealing has not
// begun.
func (l *Live) end() (*Unfinished, error) {
	if l.growing == nil {
		return nil, nil
	}
	l.growing.Close()
	l.ended.Wait()
	l.cancel()
	l.growing = nil
	if l.err != nil {
		l.Abandon()
		return nil, l.err
	}
	return l.tape, nil
}

// Abandon stops, and leaves nothing but the stream.
func (l *Live) Abandon() {
	if l.growing != nil {
		l.cancel()
		l.growing.Close()
		l.ended.Wait()
		l.growing = nil
	}
	if l.tape != nil {
		l.tape.Abandon()
		l.tape = nil
	}
}

// Finish makes the tape of a stream whose writer has ended: what is left to do, or all if
// Start was not called or sealing failed meanwhile.
func (l *Live) Finish(ctx context.Context) (*Result, error) {
	ended := time.Now()
	u, err := l.end()
	if err != nil {
		OrSilent(l.job.Reporter).Problem(fmt.Errorf("sealing while recording failed, and begins anew: %w", err))
	}
	if u == nil {
		return l.job.Run(ctx)
	}
	defer u.Abandon()
	u.start = ended
	return u.Finish(ctx)
}
