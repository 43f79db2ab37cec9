// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Launched is a command that was started without being traced.
type Launched struct {
	PID  int
	stub *stub
	jobs jobControl
	stop func()
}

// Launch starts a command that nobody traces. Its gate is called while the stub still has
// a few calls to make before its execve, which is the command's first. Of the fields of
// Command only those that say what to run and Gate count. Any number of commands may be
// launched, but not beside a Engine.Run, which waits for all children.
//
// Until Close, the terminal's signals are handled as in a Run; cancel is called
// for one that comes when the command has ended.
func Launch(c *Command, cancel func()) (l *Launched, err error) {
	s, err := startStub(c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = unix.Kill(s.pid, unix.SIGKILL)
			_, _ = wait(s.pid, 0)
			s.close()
		}
	}()
	if c.Gate != nil {
		if err := c.Gate(s.pid); err != nil {
			return nil, err
		}
	}
	l = &Launched{PID: s.pid, stub: s}
	l.jobs.setRoot(s.pid)
	l.stop = l.jobs.start(cancel, c.Keep...)
	if _, err := s.sock.Write([]byte{1}); err != nil {
		l.stop()
		return nil, fmt.Errorf("let the stub go: %w", err)
	}
	return l, nil
}

// Wait returns when the command has ended. The error says why it was not executed.
func (l *Launched) Wait() (Status, error) {
	defer l.stub.close()
	st := Status{PID: l.PID, Ended: true}
	executed := make(chan error, 1)
	go func() { executed <- l.executed() }()
	for {
		ws, err := wait(l.PID, unix.WUNTRACED|unix.WCONTINUED)
		switch {
		case err != nil:
			return st, fmt.Errorf("wait for process %d: %w", l.PID, err)
		case ws.Stopped():
			l.jobs.rootStopped(true)
			continue
		case ws.Continued():
			l.jobs.rootStopped(false)
			continue
		case ws.Signaled():
			st.Signal = ws.Signal()
		default:
			st.Exit = ws.ExitStatus()
		}
		l.jobs.setRoot(0)
		return st, <-executed
	}
}

// Close gives the signals back.
func (l *Launched) Close() { l.stop() }

// executed waits until the stub's socket is closed, by its execve or with a report.
func (l *Launched) executed() error {
	err := l.stub.failure()
	var path *os.PathError
	var setup *SetupError
	if errors.As(err, &path) || errors.As(err, &setup) {
		return err
	}
	return nil // closed without a report
}

func wait(pid, flags int) (ws unix.WaitStatus, err error) {
	for {
		if _, err = unix.Wait4(pid, &ws, flags, nil); err != syscall.EINTR {
			return ws, err
		}
	}
}
