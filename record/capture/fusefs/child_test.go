// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// A program that uses a mount which it serves itself can wait for itself: a page fault
// stops the Go scheduler, and the server with it. So the tests serve, and what uses the
// mount is this test program once more, as a child.
const childEnv = "IOTAPE_FUSEFS_CHILD"

// children are what a child can be told to do in a directory. What they return is
// compared.
var children = map[string]func(dir string) (any, error){
	"posix": runPosixCases,
	"fsx":   runFsx,
}

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		runtime.LockOSThread()
		res, err := children[what](os.Args[len(os.Args)-1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = json.NewEncoder(os.Stdout).Encode(res)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs one of children in a directory.
func child(t *testing.T, what, dir string, result any) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, dir)
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	var says strings.Builder
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s in %s: %v\n%s", what, dir, err, says.String())
	}
	if err := json.Unmarshal(out, result); err != nil {
		t.Fatal(err)
	}
}

// command returns a program that will run in a directory of a mount that this process
// serves. With exec.Cmd.Dir the child enters the directory before it executes anything,
// and the thread that made it waits for that (vfork(2)) where the Go scheduler cannot stop
// it. A garbage collection at that moment stops all other threads first, the server's too,
// and then waits for the child for ever. So a shell goes there.
func command(dir string, argv ...string) *exec.Cmd {
	return exec.Command("/bin/sh", append([]string{"-c", `cd "$1" && shift && exec "$@"`, "sh", dir}, argv...)...)
}

// sh runs a shell script in a directory and returns what it says.
func sh(t *testing.T, dir, script string) string {
	t.Helper()
	out, err := command(dir, "sh", "-ec", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// needFUSE skips the test unless file systems can be mounted.
func needFUSE(t *testing.T) {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedFUSE(t)
}

// mounted mounts a new lower directory for the test.
func mounted(t *testing.T, o Options) *Mount {
	t.Helper()
	needFUSE(t)
	if o.Lower == "" {
		o.Lower = t.TempDir()
	}
	if o.Mountpoint == "" {
		o.Mountpoint = t.TempDir()
	}
	m, err := New(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ended(t, m) })
	return m
}

// ended unmounts and waits, if that has not been done.
func ended(t *testing.T, m *Mount) {
	t.Helper()
	// Other tests make mount namespaces, which have the mount until they end.
	if err := m.Unmount(); err != nil && !errors.Is(err, ErrBusy) {
		t.Error(err)
		_ = unix.Unmount(m.Mountpoint, unix.MNT_FORCE)
	}
	select {
	case <-m.Ended():
	case <-time.After(2 * time.Minute):
		buf := make([]byte, 1<<20)
		t.Fatalf("the mount has not ended\n%s", buf[:runtime.Stack(buf, true)])
	}
	if m.fs.nodes.count() > 0 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// recording returns a recording into a file, and the file's name.
func recording(t *testing.T) (*Recording, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "stream")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	sw, err := trace.NewStreamWriter(f, 1, &trace.Head{Backend: Name, Arch: runtime.GOARCH, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &Recording{Stream: sw}, name
}

// A program that the serving one starts must not keep the mount from ending with it.
func TestNoDeviceInChildren(t *testing.T) {
	mounted(t, Options{})
	out, err := exec.Command("sh", "-c", "ls -l /proc/self/fd").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "/dev/fuse") {
		t.Errorf("a child has the connection to the kernel:\n%s", out)
	}
}
