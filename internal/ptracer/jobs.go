// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// jobControl is how the recorder behaves on the terminal that it shares with the
// command: see the package's page.
type jobControl struct {
	mu      sync.Mutex
	root    int       // 0 once it ended
	stopped bool      // the command is in a group stop
	suspend time.Time // when the recorder was told to stop; zero if it was not
	seen    map[syscall.Signal]time.Time
	pause   func() // Command.Suspend
}

// One kill of a process group reaches the recorder and the command, at times that
// differ. The recorder waits so long for the command's, and takes one that came
// up to so long before for the same.
const (
	waitSame  = 100 * time.Millisecond
	sinceSame = time.Second
)

// stopTogether is how long the command may take to stop, on a signal that told
// both to; after that it has handled the signal otherwise.
const stopTogether = 2 * time.Second

// start takes over the recorder's signals until the returned function is called.
// Signals that are ignored stay so, and those of keep are the caller's.
func (j *jobControl) start(cancel func(), keep ...syscall.Signal) (stop func()) {
	j.seen = map[syscall.Signal]time.Time{}
	var take []os.Signal
	ignored := ignoredSignals()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
		if ignored>>(s-1)&1 == 0 && !slices.Contains(keep, s) {
			take = append(take, s)
		}
	}
	c := make(chan os.Signal, 16)
	if len(take) > 0 {
		signal.Notify(c, take...)
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-c:
				j.received(s.(syscall.Signal), cancel)
			}
		}
	}()
	return func() {
		signal.Stop(c)
		close(done)
	}
}

func (j *jobControl) received(s syscall.Signal, cancel func()) {
	switch s {
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		j.mu.Lock()
		defer j.mu.Unlock()
		j.suspend = time.Now()
		j.settle()
		return
	}
	j.mu.Lock()
	root := j.root
	j.mu.Unlock()
	switch {
	case root == 0 && (s == syscall.SIGUSR1 || s == syscall.SIGUSR2): // they were for the command
	case root == 0:
		cancel()
	case forwarded(s):
		at := time.Now()
		time.AfterFunc(waitSame, func() { j.forward(s, at) })
	}
}

// forwarded reports whether a signal to the recorder is for the command. What the terminal sends reaches both.
func forwarded(s syscall.Signal) bool {
	switch s {
	case syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2:
		return true
	}
	return false
}

// forward sends the command a signal that the recorder got, unless the command
// got it too.
func (j *jobControl) forward(s syscall.Signal, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if seen, ok := j.seen[s]; ok && seen.After(at.Add(-sinceSame)) {
		return
	}
	if j.root != 0 {
		_ = syscall.Kill(j.root, s)
	}
}

func (j *jobControl) setRoot(pid int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.root = pid
}

// delivered is told of a signal that the command gets, and from whom: what the recorder forwarded says nothing of
// what others send.
func (j *jobControl) delivered(s syscall.Signal, from int) {
	if !forwarded(s) || from == syscall.Getpid() {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen[s] = time.Now()
}

func (j *jobControl) rootStopped(stopped bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stopped = stopped
	j.settle()
}

// settle stops the recorder when both it and the command were told to. The
// shell's SIGCONT goes to both.
func (j *jobControl) settle() {
	if j.root != 0 && j.stopped && time.Since(j.suspend) < stopTogether {
		j.suspend = time.Time{}
		if j.pause != nil {
			j.pause()
			return
		}
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	}
}
