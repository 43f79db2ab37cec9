// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/hint"
)

// start makes the stub, seizes it and sets it going towards its execve.
func (tr *Engine) start() (*stub, error) {
	s, err := startStub(&tr.cmd)
	if err != nil {
		return nil, err
	}
	tr.root, tr.status.PID = s.pid, s.pid
	if err := tr.seize(s); err != nil {
		_ = unix.Kill(s.pid, unix.SIGKILL)
		_, _ = unix.Wait4(s.pid, nil, unix.WALL, nil)
		s.close()
		return nil, err
	}
	t := tr.add(s.pid, s.pid)
	t.stopped = true
	tr.jobs.setRoot(s.pid)
	tr.resume(t)
	if _, err := s.sock.Write([]byte{1}); err != nil && !errors.Is(err, syscall.EPIPE) {
		return nil, fmt.Errorf("let the stub go: %w", err) // EPIPE: it was killed; the loop sees that
	}
	return s, nil
}

// seize attaches to the stub, which waits for a byte, and stops it.
func (tr *Engine) seize(s *stub) error {
	tr.options = followOptions
	if len(tr.cmd.Filter) > 0 {
		tr.options |= unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_EXITKILL
	}
	if err := ptrace(unix.PTRACE_SEIZE, s.pid, 0, tr.options); err != nil {
		if other := tracerOf(s.pid); other != 0 {
			return fmt.Errorf("trace %s: process %d (%s) traces it already, and there can be only one",
				s.path, other, nameOf(other))
		}
		return &SetupError{Feature: "permission to trace its own child", Err: hint.With(err,
			"allow ptrace(2) where this runs: docker run --cap-add SYS_PTRACE, or a seccomp profile with it "+
				"(docs/privileges.md)")}
	}
	if err := ptrace(unix.PTRACE_INTERRUPT, s.pid, 0, 0); err != nil {
		return fmt.Errorf("stop process %d: %w", s.pid, err)
	}
	for {
		var ws unix.WaitStatus
		_, err := unix.Wait4(s.pid, &ws, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait for process %d: %w", s.pid, err)
		case !ws.Stopped():
			return fmt.Errorf("start %s: the stub was killed", s.path)
		case event(ws) == unix.PTRACE_EVENT_STOP:
			return nil
		default: // a signal of the Go runtime came first
			if err := ptrace(unix.PTRACE_CONT, s.pid, 0, uintptr(ws.StopSignal())); err != nil {
				return fmt.Errorf("continue process %d: %w", s.pid, err)
			}
		}
	}
}
