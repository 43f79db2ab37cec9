// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// The filter lets files and threads be used, and refuses what a replay has no use for.
func TestFilterCalls(t *testing.T) {
	t.Parallel()
	const filtered = "IOTAPE_TEST_FILTERED"
	dir := os.Getenv(filtered)
	if dir == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFilterCalls$", "-test.v")
		cmd.Env = append(os.Environ(), filtered+"="+t.TempDir())
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, b)
		}
		return
	}
	if err := filterCalls(false); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 { // threads, also those of C's library
		all.Go(func() {
			runtime.LockOSThread()
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				t.Errorf("a working directory of a thread's own: %v", err)
			}
		})
	}
	all.Wait()
	name := filepath.Join(dir, "f")
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Error(err)
	}
	if err := os.Rename(name, name+"2"); err != nil {
		t.Error(err)
	}
	_, socket := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	_, _, uring := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
	_, _, ptrace := unix.Syscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0)
	_, _, exec := unix.Syscall(unix.SYS_EXECVE, 0, 0, 0)
	_, _, kill := unix.Syscall(unix.SYS_KILL, uintptr(os.Getpid()), 0, 0)
	_, _, clone := unix.Syscall(unix.SYS_CLONE, unix.CLONE_NEWUSER, 0, 0)
	for call, err := range map[string]error{
		"socket": socket, "io_uring_setup": uring, "ptrace": ptrace, "execve": exec, "kill": kill, "clone": clone,
		"mount": unix.Mount("", dir, "tmpfs", 0, ""), "chroot": unix.Chroot(dir),
		"unshare": unix.Unshare(unix.CLONE_NEWUSER), "setns": unix.Setns(0, 0), "umount2": unix.Unmount(dir, 0),
		"pivot_root": unix.PivotRoot(dir, dir),
	} {
		if err != unix.EPERM {
			t.Errorf("%s: error is %v, want %v", call, err, unix.EPERM)
		}
	}
}
