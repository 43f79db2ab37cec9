// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// Growing reads a file that is still being written. At the end of what is there Read waits
// for more, until Close.
type Growing struct {
	f      *os.File
	off    int64
	close  sync.Once
	closed chan struct{} // there will be no more
}

// NewGrowing reads f from its beginning. The caller closes f.
func NewGrowing(f *os.File) *Growing { return &Growing{f: f, closed: make(chan struct{})} }

// pollInterval is how long a reader that has caught up leaves the writer alone: sealing
// in larger parts costs less.
const pollInterval = 20 * time.Millisecond

// Read waits for what is not written yet. After Close it returns what is left, then io.EOF.
func (g *Growing) Read(b []byte) (int, error) {
	for last := false; ; {
		n, err := g.f.ReadAt(b, g.off)
		g.off += int64(n)
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
		case <-g.closed:
			last = true
		case <-time.After(pollInterval):
		}
	}
}

// Close says that the file will not grow any more. It may be called from any goroutine, and
// more than once.
func (g *Growing) Close() { g.close.Do(func() { close(g.closed) }) }
