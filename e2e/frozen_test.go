// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// lockedBuffer is what a program says while it runs.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestFrozenRecorder freezes the control group of a recorder. Nobody can continue it: the programs that wait for it go
// on when the recorder is killed, though its helpers are frozen too, or when the group is thawed, and then the tape has
// all.
func TestFrozenRecorder(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it waits for the watchdog")
	writer := compiled(t, "writer")
	for _, tt := range []struct {
		backend string
		killed  bool
	}{{"ebpf", true}, {"ebpf", false}, {"ptrace", true}, {"ptrace", false}, {"interpose", true},
		{"interpose", false}} {
		t.Run(tt.backend+" "+strconv.FormatBool(tt.killed), func(t *testing.T) {
			if tt.backend == "ebpf" {
				testenv.NeedBPF(t)
			}
			if tt.backend == "interpose" && !slices.Contains(backendsWithoutRights(), tt.backend) {
				return // not for this architecture
			}
			group, err := os.Open(testenv.Cgroup(t))
			if err != nil {
				t.Fatal(err)
			}
			defer group.Close()
			dir := t.TempDir()
			program, ended := startWriter(t, writer, dir)
			cmd := exec.Command(testenv.Iotape(t), "record", "-o", "a.tape", "--backend", tt.backend, "--ring", "1M",
				"--hold-max", "1s", "--pid", strconv.Itoa(program.Process.Pid))
			said := &lockedBuffer{}
			cmd.Dir, cmd.Stderr = dir, said
			cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill()
				freeze(t, group.Name(), false)
				eventually(func() bool { return os.Remove(group.Name()) == nil }) // its helpers end
			}()
			begun(t, said)
			freeze(t, group.Name(), true)
			touch(t, dir, "go")
			if tt.killed {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			} else {
				freeze(t, group.Name(), false)
			}
			if err := <-ended; err != nil {
				t.Errorf("the program: %v", err)
			}
			if err := cmd.Wait(); tt.killed {
				return
			} else if err != nil {
				t.Errorf("record: %v\n%s", err, said)
			}
			contains(t, said.String(), "lost 0")
		})
	}
}
