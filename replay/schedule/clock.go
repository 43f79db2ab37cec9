// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadClock has the two clocks by which a thread computes, ns. The CPU clock stands still
// while the thread has no processor; it is read by a system call, which takes several
// times as long as reading the other one.
type threadClock struct {
	elapsed, cpu func() int64
}

// defaultThreadClock has those of the calling thread, whichever that is.
var defaultThreadClock = threadClock{elapsed: now, cpu: threadCPU}

func threadCPU() int64 {
	var ts unix.Timespec
	// Not one of Go's calls, which tell its scheduler: it does not wait for anything.
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// compute uses the processor until the thread has used it for so many ns since its CPU
// clock showed used, which was at the time done, or halted is set.
//
// A thread cannot have used more than what went by. So it spins by the fast clock for what
// is missing, and asks the CPU clock only then: once, if it kept the processor. If others
// had it meanwhile, something is missing still.
func (c *threadClock) compute(ns, done, used int64, halted *atomic.Bool) {
	if ns <= 0 {
		return
	}
	for end := done + ns; ; {
		for c.elapsed() < end {
			if halted.Load() {
				return
			}
		}
		left := ns - (c.cpu() - used)
		if left <= 0 || halted.Load() {
			return
		}
		end = c.elapsed() + left
	}
}

// epoch and epochNS are one moment, for the two ways of reading the clock: the fast
// one, and the one that sleeping needs.
var epoch, epochNS = time.Now(), monotonic()

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// now is the replay's clock, ns.
func now() int64 { return int64(time.Since(epoch)) }

// spinNS is how long before its time a thread is awake: with a timer slack of 1 ns a
// sleep ends 30 to 70 µs late.
const spinNS = int64(100 * time.Microsecond)

// napNS limits how long a waiting thread takes to see that the replay was stopped.
const napNS = int64(50 * time.Millisecond)

// sleepExactly makes the calling thread's sleeps end when they should (prctl(2)): by
// default the kernel adds up to 50 µs.
func sleepExactly() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }
