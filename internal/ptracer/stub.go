// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/early"
)

// quiet keeps the stub's Go runtime from sending itself signals (SIGURG): one that is pending at execve would
// be the command's. Of a name that is twice in an environment the first counts.
const quiet = "GODEBUG=asyncpreemptoff=1"

// stub is the recorder's end.
type stub struct {
	pid  int
	path string
	sock *os.File
}

func (s *stub) close() { s.sock.Close() }

// failure returns why the stub did not become the command.
func (s *stub) failure() error {
	b, err := io.ReadAll(s.sock)
	r, ok := early.DecodeReport(b)
	if !ok {
		return fmt.Errorf("exec %s: the stub ended early: %w", s.path, cmp.Or(err, io.EOF))
	}
	if r.Op == "exec" {
		return &os.PathError{Op: "exec", Path: s.path, Err: r.Errno}
	}
	return &SetupError{Feature: r.Op, Err: r.Errno}
}

// lookPath finds the program as execvp would.
func lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil // relative to Command.Dir; execve reports what is wrong with it
	}
	return exec.LookPath(name)
}

// startStub starts the stub and hands it its order. It returns when the stub
// waits to be seized.
func startStub(c *Command) (s *stub, err error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("no command")
	}
	path, err := lookPath(c.Argv[0])
	if err != nil {
		return nil, err
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	s = &stub{path: path, sock: os.NewFile(uintptr(fds[0]), "stub socket")}
	theirs := fds[1]
	defer func() {
		if theirs >= 0 {
			unix.Close(theirs)
		}
		if err != nil {
			s.sock.Close()
			if s.pid != 0 {
				_ = unix.Kill(s.pid, unix.SIGKILL)
				_, _ = unix.Wait4(s.pid, nil, 0, nil)
			}
		}
	}()

	files := [3]uintptr{0, 1, 2}
	for i, f := range c.Files {
		if f != nil {
			files[i] = f.Fd()
		}
	}
	// The socket keeps its number in the child: it collides with no descriptor
	// that the command inherits through the recorder.
	syscall.ForkLock.Lock()
	_, err = unix.FcntlInt(uintptr(theirs), unix.F_SETFD, 0)
	syscall.ForkLock.Unlock()
	if err != nil {
		return nil, fmt.Errorf("pass a socket: %w", err)
	}
	s.pid, err = syscall.ForkExec("/proc/self/exe", []string{early.Exec, strconv.Itoa(theirs)},
		&syscall.ProcAttr{Dir: c.Dir, Env: append([]string{quiet}, os.Environ()...), Files: files[:]})
	runtime.KeepAlive(c)
	if err != nil {
		return s, fmt.Errorf("start %s: %w", path, err)
	}
	unix.CloseOnExec(theirs)
	order := early.Order{Path: path, Argv: c.Argv, Env: env, Credential: c.Credential}
	for _, f := range c.Filter {
		order.Filter = append(order.Filter, early.Filter(f))
	}
	if _, err := s.sock.Write(order.Encode()); err != nil {
		return s, fmt.Errorf("start %s: send the order: %w", path, err)
	}
	unix.Close(theirs) // so that the stub's death is seen as an end
	theirs = -1
	if _, err := io.ReadFull(s.sock, make([]byte, 1)); err != nil {
		return s, fmt.Errorf("start %s: the stub does not answer: %w", path, err)
	}
	return s, nil
}
