package replay

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// clocks are the two clocks by which a thread computes, ns. The CPU clock stands still
// while the thread has no processor; it is read by a system call, which takes several
// times as long as reading the other one.
type clocks struct {
	elapsed, cpu func() int64
}

// threadClocks are those of the calling thread, whichever that is.
var threadClocks = clocks{elapsed: clock, cpu: threadCPU}

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
func (c *clocks) compute(ns, done, used int64, halted *atomic.Bool) {
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
