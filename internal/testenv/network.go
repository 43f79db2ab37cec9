// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// ownNetwork is set in the environment of the process that has its own network.
const ownNetwork = "IOTAPE_TEST_OWN_NETWORK"

// RunWithOwnNetwork is for a TestMain: it runs the tests in a network namespace with
// nothing but a loopback interface, and returns the exit status. Nothing that other tests
// do to the machine's network is seen there: Chromium breaks off what it loads whenever an
// interface appears or goes (ERR_NETWORK_CHANGED). The tests are run by a second process of
// the same program, as a process with threads cannot leave its namespace. Without root they
// run here.
func RunWithOwnNetwork(m *testing.M) int {
	switch {
	case os.Getenv(ownNetwork) != "":
		if err := loopbackUp(); err != nil {
			fmt.Fprintln(os.Stderr, "testenv: loopback interface:", err)
			return 2
		}
		return m.Run()
	case os.Geteuid() != 0:
		return m.Run()
	}
	runtime.LockOSThread() // the second process dies with this thread
	defer runtime.UnlockOSThread()
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		return 2
	}
	c := exec.Command(self, os.Args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), ownNetwork+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		if errors.Is(err, syscall.EPERM) && !CI() {
			return m.Run() // root of a container
		}
		fmt.Fprintln(os.Stderr, "testenv: a process with a network of its own:", err)
		return 2
	}
	// What asks this process to end, or for its stacks, means the tests.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	defer signal.Stop(signals)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case s := <-signals:
				_ = c.Process.Signal(s)
			case <-done:
				return
			}
		}
	}()
	err = c.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv: the tests:", err)
		return 2
	}
	return 0
}

// loopbackUp sets the loopback interface up: it is down in a new namespace.
func loopbackUp() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	request := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS,
		uintptr(unsafe.Pointer(&request))); e != 0 {
		return e
	}
	return nil
}
