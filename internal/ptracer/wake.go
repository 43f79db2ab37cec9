// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wakeSignal interrupts the tracing thread's wait4. It is sent to that thread
// only, by this process only.
const wakeSignal = 62

const saRestart = 0x10000000 // SA_RESTART (asm-generic/signal-defs.h)

// sigaction is the kernel's struct of amd64 and arm64 (asm-generic/signal.h).
type sigaction struct {
	handler, flags, restorer, mask uint64
}

func rtSigaction(set, old *sigaction) error {
	_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, wakeSignal, uintptr(unsafe.Pointer(set)),
		uintptr(unsafe.Pointer(old)), 8, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// startWaking makes Do effective. The Go runtime's signal handlers restart
// interrupted calls; this one's must not, so its flag is cleared.
func (tr *Engine) startWaking() (stop func(), err error) {
	if err := waking.begin(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tr.wake(done)
	}()
	return func() {
		close(done)
		<-ended
		waking.end()
	}, nil
}

// waking is the process's action for the signal while tracers use it.
var waking wakeAction

type wakeAction struct {
	mu    sync.Mutex
	users int
	old   sigaction
}

func (w *wakeAction) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users == 0 {
		if err := rtSigaction(nil, &w.old); err != nil {
			return fmt.Errorf("read the action of signal %d: %w", wakeSignal, err)
		}
		mine := w.old
		mine.flags &^= saRestart
		if err := rtSigaction(&mine, nil); err != nil {
			return fmt.Errorf("set the action of signal %d: %w", wakeSignal, err)
		}
	}
	w.users++
	return nil
}

func (w *wakeAction) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users--; w.users == 0 {
		_ = rtSigaction(&w.old, nil)
	}
}

// wake signals until the queue was taken: a signal between the tracer's look at
// the queue and its wait4 is lost.
func (tr *Engine) wake(done chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-tr.kick:
		}
		for pause := 50 * time.Microsecond; tr.queued(); pause = min(2*pause, 5*time.Millisecond) {
			if tr.waiting.Load() {
				_ = unix.Tgkill(unix.Getpid(), tr.tid, wakeSignal)
			}
			select {
			case <-done:
				return
			case <-time.After(pause):
			}
		}
	}
}

func (tr *Engine) queued() bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.queue) > 0
}

func (tr *Engine) runQueue() {
	tr.mu.Lock()
	q := tr.queue
	tr.queue = nil
	tr.mu.Unlock()
	for _, f := range q {
		f()
	}
}
