// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stubName is argv[0] of the stub; argv[1] is the number of its socket.
const stubName = "iotape-exec-stub"

// order is what the recorder sends on the stub's socket; the stub answers with one
// byte when it has read it; the recorder seizes it and sends one byte; the stub
// calls execve. A closed socket is success, a report is failure.
type order struct {
	Path       string
	Argv, Env  []string
	Filter     []unix.SockFilter
	Credential *syscall.Credential
}

type report struct {
	Op    string // what went wrong: "exec", or what the stub needed
	Errno syscall.Errno
}

// quiet keeps the stub's Go runtime from sending itself signals (SIGURG): one that is pending at execve would
// be the command's. Of a name that is twice in an environment the first counts.
const quiet = "GODEBUG=asyncpreemptoff=1"

func isStub() bool { return len(os.Args) == 2 && os.Args[0] == stubName }

// The thread that calls execve must be the one that the recorder seizes, the
// process's first. Package variables are initialised on that thread, and
// functions of main may no longer be.
var _ = func() bool {
	if isStub() {
		runtime.LockOSThread()
	}
	return true
}()

// Stub does nothing in an ordinary process. In a stub it becomes the command and
// does not return. main must call it before anything else.
func Stub() {
	if !isStub() {
		return
	}
	fd, err := strconv.Atoi(os.Args[1])
	if err != nil {
		os.Exit(127)
	}
	unix.CloseOnExec(fd)
	setName("iotape") // until execve; without it "exe"
	sock := os.NewFile(uintptr(fd), "stub socket")
	r := becomeCommand(sock)
	_ = gob.NewEncoder(sock).Encode(r)
	os.Exit(127)
}

func becomeCommand(sock *os.File) report {
	fail := func(op string, err error) report {
		e := syscall.EIO
		errors.As(err, &e)
		return report{Op: op, Errno: e}
	}
	var o order
	if err := gob.NewDecoder(sock).Decode(&o); err != nil {
		return fail("its order", err)
	}
	ready := []byte{1}
	if _, err := sock.Write(ready); err != nil {
		return fail("its socket", err)
	}
	if _, err := io.ReadFull(sock, ready); err != nil {
		return fail("its tracer", err)
	}
	if len(o.Filter) > 0 {
		if err := installFilter(o.Filter); err != nil {
			return fail("a seccomp filter", err)
		}
	}
	if o.Credential != nil { // last: a filter may be installed only by root
		if err := become(o.Credential); err != nil {
			return fail("the right to become another user (CAP_SETUID, CAP_SETGID)", err)
		}
	}
	return fail("exec", syscall.Exec(o.Path, o.Argv, o.Env))
}

// become changes the user of the calling thread alone, which is the one that will be
// left after execve.
func become(c *syscall.Credential) error {
	groups := unsafe.Pointer(unsafe.SliceData(c.Groups))
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(c.Groups)), uintptr(groups), 0); e != 0 {
		return e
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(c.Gid), uintptr(c.Gid), uintptr(c.Gid)); e != 0 {
		return e
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(c.Uid), uintptr(c.Uid), uintptr(c.Uid)); e != 0 {
		return e
	}
	return nil
}

// stub is the recorder's end.
type stub struct {
	pid  int
	path string
	sock *os.File
}

func (s *stub) close() { s.sock.Close() }

// failure returns why the stub did not become the command.
func (s *stub) failure() error {
	var r report
	if err := gob.NewDecoder(s.sock).Decode(&r); err != nil {
		return fmt.Errorf("exec %s: the stub ended early: %w", s.path, err)
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
	s.pid, err = syscall.ForkExec("/proc/self/exe", []string{stubName, strconv.Itoa(theirs)},
		&syscall.ProcAttr{Dir: c.Dir, Env: append([]string{quiet}, os.Environ()...), Files: files[:]})
	runtime.KeepAlive(c)
	if err != nil {
		return s, fmt.Errorf("start %s: %w", path, err)
	}
	unix.CloseOnExec(theirs)
	if err := gob.NewEncoder(s.sock).Encode(order{Path: path, Argv: c.Argv, Env: env, Filter: c.Filter,
		Credential: c.Credential}); err != nil {
		return s, fmt.Errorf("start %s: send the order: %w", path, err)
	}
	unix.Close(theirs) // so that the stub's death is seen as an end
	theirs = -1
	if _, err := io.ReadFull(s.sock, make([]byte, 1)); err != nil {
		return s, fmt.Errorf("start %s: the stub does not answer (does main call ptracer.Stub?): %w", path, err)
	}
	return s, nil
}
