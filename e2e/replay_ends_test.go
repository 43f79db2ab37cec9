// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// waiting is a script with a call that is due after an hour, at the recorded pace.
const waiting = `iotape-script 1
host name="h" kernel="6" arch="amd64" backend="ebpf" content="full" dir="/w" uid=0 gid=0 first=1000 clock=1000 wall=1
0.0 7 thread pid=7 ppid=1 pgid=7 sid=7 uid=0 gid=0 comm="x"
0.0 7 start "/w" umask 022
0.0 0.0 0.0 7 mkdir("first", 0755) = 0
3600.0 0.0 0.0 7 mkdir("late", 0755) = 0
`

// TestReplayEnds sends a replay that waits the signals that end one: the status says that it was
// interrupted, what it made stays, and no process of it is left.
func TestReplayEnds(t *testing.T) {
	t.Parallel()
	iotape := testenv.Iotape(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			script, into := filepath.Join(dir, "script"), filepath.Join(dir, "out")
			if err := os.Mkdir(script, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{
				"replay": waiting, "skeleton": "iotape-tree 1 initial\nmkdir \"w\"\n", "content": "",
			} {
				if err := os.WriteFile(filepath.Join(script, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var stderr bytes.Buffer
			cmd := exec.Command(iotape, "replay", "--script", script, "--into", into, "--pace", "recorded")
			cmd.Stderr = &stderr
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			first := filepath.Join(into, "w/first")
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			for _, err := os.Stat(first); err != nil; _, err = os.Stat(first) {
				select {
				case err := <-ended:
					t.Fatalf("%v before the first call: %s", err, stderr.String())
				case <-time.After(10 * time.Millisecond):
				}
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
			case <-time.After(2 * time.Minute):
				_ = cmd.Process.Kill()
				t.Fatal("it does not end")
			}
			if s := cmd.ProcessState.ExitCode(); s != 2 || !strings.Contains(stderr.String(), "interrupted") {
				t.Errorf("status %d: %s", s, stderr.String())
			}
			if _, err := os.Stat(first); err != nil {
				t.Error(err)
			}
			if err := syscall.Kill(-cmd.Process.Pid, 0); err != syscall.ESRCH {
				t.Errorf("processes are left: %v", err)
			}
			mounts, err := os.ReadFile("/proc/self/mounts")
			if err != nil || bytes.Contains(mounts, []byte(into)) {
				t.Errorf("the target is mounted: %v", err)
			}
		})
	}
}
