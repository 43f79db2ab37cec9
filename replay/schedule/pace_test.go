// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A thread that waits for times is never early, and does not wait for what has gone by: so
// what one wait was too long the next one makes up for.
func TestUntil(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends, and its timer slack
	sleepExactly()
	if slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || slack != 1 {
		t.Errorf("timer slack is %d ns, %v", slack, err)
	}
	var halted atomic.Bool
	s := Timebase{halted: &halted}
	start := now()
	for i := range int64(20) {
		due := start + i*3*spinNS
		s.waitUntil(due)
		if now := now(); now < due {
			t.Fatalf("wait %d ended %d ns too early", i, due-now)
		}
	}
	s.waitUntil(start)
	halted.Store(true)
	s.waitUntil(start + int64(time.Hour))
}
