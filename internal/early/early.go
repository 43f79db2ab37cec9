// SPDX-License-Identifier: Apache-2.0

package early

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// The names (argv[0]) of the processes.
const (
	Exec     = "iotape-exec-stub" // argv[1]: the number of its socket
	Guardian = "iotape-guard"
	Watchdog = "iotape-watchdog" // argv[1], argv[2]: the recorder, and how long it may be stopped
)

// Package variables are initialised on the process's first thread, and functions of main may no longer
// be. The thread that calls execve must be that one.
var _ = func() bool {
	switch {
	case len(os.Args) == 2 && os.Args[0] == Exec:
		runtime.LockOSThread()
		os.Exit(becomeCommand())
	case len(os.Args) == 1 && os.Args[0] == Guardian:
		os.Exit(guard())
	case len(os.Args) == 3 && os.Args[0] == Watchdog:
		os.Exit(watch())
	}
	return true
}()

// setProcessName is for ps; without it the name is "exe".
func setProcessName(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

// field returns a line's value in a file like /proc/ID/status.
func field(b []byte, name string) []byte {
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return bytes.TrimSpace(rest)
		}
	}
	return nil
}

// isStopped reports whether a thread, whose status is given, is stopped by a signal.
func isStopped(status []byte) bool { return bytes.HasPrefix(field(status, "State:"), []byte("T")) }

// numbers returns the names of a directory's entries that are numbers.
func numbers(name string) []string {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // ended meanwhile: what there was
	list := names[:0]
	for _, s := range names {
		if _, err := strconv.Atoi(s); err == nil {
			list = append(list, s)
		}
	}
	return list
}

// call makes a system call that does not block.
//
//go:uintptrescapes
func call(nr, a, b, c uintptr) syscall.Errno {
	_, _, e := syscall.RawSyscall(nr, a, b, c)
	return e
}
