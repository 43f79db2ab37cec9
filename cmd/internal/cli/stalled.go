// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

var (
	endOnce   sync.Once
	discarded atomic.Bool // output was thrown away
)

// endsStalled lets a command end that is interrupted while nobody reads its standard output: a
// write to a full pipe does not see that the context is done.
func endsStalled(ctx context.Context) {
	endOnce.Do(func() {
		context.AfterFunc(ctx, func() {
			for !stalled(unix.Stdout) {
				time.Sleep(200 * time.Millisecond)
			}
			discarded.Store(true)
			discard(unix.Stdout)
		})
	})
}

// stalled reports whether a descriptor accepts nothing for some time.
func stalled(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(p, 300)
	return err == nil && n == 0
}

// discard throws away what is written to a descriptor from now on, and what threads are writing.
func discard(fd int) {
	null, err := unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	if unix.Dup3(null, fd, 0) != nil {
		return
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			// The kernel begins a call that it interrupts again, with what the descriptor is now.
			// Go's own signal for this, which means nothing else.
			_ = unix.Tgkill(unix.Getpid(), tid, unix.SIGURG)
		}
	}
}
