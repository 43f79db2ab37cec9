package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// kernelClock is CLOCK_MONOTONIC. It waits in the kernel and not with time.Sleep, which
// ends up to 1 ms late (the runtime waits for timers in epoll_wait) and takes more of the
// processors than all the rest of a request.
type kernelClock struct {
	base  time.Time
	begin time.Duration // the kernel's time at base
}

func newKernelClock() (*kernelClock, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return nil, err
	}
	return &kernelClock{time.Now(), time.Duration(t.Nano())}, nil
}

// now asks no system call: time.Since reads the kernel's page.
func (k *kernelClock) now() time.Duration { return k.begin + time.Since(k.base) }

func (k *kernelClock) until(t time.Duration) {
	if t <= k.now() {
		return
	}
	// Threads of the runtime may be woken 50 µs late; each asks for itself.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	at := unix.NsecToTimespec(int64(t))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil) == unix.EINTR {
	}
}
