// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
)

// halted is a process that can be stopped by SIGSTOP, or by its control group.
type halted struct {
	pid   int
	group string // "": by SIGSTOP
}

// halt stops it, or lets it go on, and waits until it does.
func (h *halted) halt(t *testing.T, stop bool) {
	t.Helper()
	if h.group != "" {
		freeze(t, h.group, stop)
		return
	}
	sig := syscall.SIGCONT
	if stop {
		sig = syscall.SIGSTOP
	}
	if err := syscall.Kill(h.pid, sig); err != nil {
		t.Fatal(err)
	}
}

// freeze freezes a control group, or thaws it, and waits until it is.
func freeze(t *testing.T, group string, stop bool) {
	t.Helper()
	state := "0"
	if stop {
		state = "1"
	}
	if err := os.WriteFile(filepath.Join(group, "cgroup.freeze"), []byte(state), 0); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool {
		b, _ := os.ReadFile(filepath.Join(group, "cgroup.events"))
		return strings.Contains(string(b), "frozen "+state)
	}) {
		t.Fatalf("the control group does not come to the state frozen %s", state)
	}
}

// forHalts calls f for each way to record, and each way to stop the program.
func forHalts(t *testing.T, f func(t *testing.T, args []string, frozen bool)) {
	forWays(t, func(t *testing.T, _ string, args []string) {
		t.Run("SIGSTOP", func(t *testing.T) { f(t, args, false) })
		t.Run("frozen", func(t *testing.T) { f(t, args, true) })
	})
}

// startHalting starts the program writer of testdata/harm by the words before it, in a control group of its own if it
// is to be frozen. It returns when the program waits for the file go.
func startHalting(t *testing.T, dir string, frozen bool,
	before ...string) (cmd *exec.Cmd, said *lockedBuffer, h *halted) {
	t.Helper()
	script, group := `echo $$ >pid; exec "$0" ready go 500`, ""
	if frozen {
		group = testenv.Cgroup(t)
		script = `echo $$ >` + group + `/cgroup.procs; ` + script
	}
	argv := append(before, "sh", "-c", script, compiled(t, "writer"))
	said = &lockedBuffer{}
	cmd = exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h = &halted{group: group}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if h.pid != 0 {
			_ = syscall.Kill(h.pid, syscall.SIGKILL)
		}
		if group != "" {
			freeze(t, group, false)
			eventually(func() bool { return os.Remove(group) == nil }) // when its processes have ended
		}
	})
	if !eventually(func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil }) {
		t.Fatalf("the program does not begin:\n%s", said)
	}
	b, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err == nil {
		h.pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, said, h
}

// TestHaltedProgram records a program that is stopped several times, or its control group frozen, once for longer
// than --hold-max: it comes to its end, and the tape has all.
func TestHaltedProgram(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it waits for longer than the watchdog")
	forHalts(t, func(t *testing.T, args []string, frozen bool) {
		dir := t.TempDir()
		args = append([]string{testenv.Iotape(t), "record", "-o", "a.tape", "--hold-max", "1s"}, args...)
		cmd, said, program := startHalting(t, dir, frozen, append(args, "--")...)
		touch(t, dir, "go")
		for i := range 5 {
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			if _, err := os.Stat(filepath.Join(dir, "go.end")); err == nil {
				break
			}
			program.halt(t, true)
			time.Sleep(20 * time.Millisecond)
			if i == 0 {
				time.Sleep(1500 * time.Millisecond)
			}
			program.halt(t, false)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("record: %v\n%s", err, said)
		}
		contains(t, said.String(), "lost 0")
		wroteAll(t, dir)
	})
}

// wroteAll requires that a.tape is valid and has what the program writer did.
func wroteAll(t *testing.T, dir string) {
	t.Helper()
	e := &env{iotape: testenv.Iotape(t), dir: dir}
	e.run(t, e.iotape, "check", "a.tape")
	writes := 0
	e.events(t, "a.tape", func(ev *event.Event) {
		if ev.Kind == event.Call && ev.Spec().Name == "pwrite64" {
			writes++
		}
	})
	if writes != 500 {
		t.Errorf("the tape has %d writes, want 500", writes)
	}
}

// TestEndWhileHalted records a program that runs already, and ends the recording while the program is stopped, or its
// control group is frozen. The recorder does not wait for it, and the program goes on later. It may be stopped before
// the recording begins.
func TestEndWhileHalted(t *testing.T) {
	t.Parallel()
	forHalts(t, func(t *testing.T, args []string, frozen bool) {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprint("before ", before), func(t *testing.T) {
				dir := t.TempDir()
				program, _, h := startHalting(t, dir, frozen)
				h.halt(t, before)
				cmd := exec.Command(testenv.Iotape(t), append([]string{"record", "-o", "a.tape", "--pid",
					strconv.Itoa(h.pid)}, args...)...)
				said := &lockedBuffer{}
				cmd.Dir, cmd.Stderr = dir, said
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = cmd.Process.Kill() }()
				begun(t, said)
				touch(t, dir, "go")
				time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
				h.halt(t, true)
				if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Wait(); err != nil { // while the program is halted
					t.Errorf("record: %v\n%s", err, said)
				}
				contains(t, said.String(), "lost 0")
				h.halt(t, false)
				if err := program.Wait(); err != nil {
					t.Errorf("the program: %v", err)
				}
				e := &env{iotape: testenv.Iotape(t), dir: dir}
				e.run(t, e.iotape, "check", "a.tape")
			})
		}
	})
}

// TestHaltedRecorder stops the recorder (SIGSTOP) many times for a short time. Nothing is lost.
func TestHaltedRecorder(t *testing.T) {
	t.Parallel()
	forWays(t, func(t *testing.T, way string, args []string) {
		dir := t.TempDir()
		args = append([]string{testenv.Iotape(t), "record", "-o", "a.tape"}, args...)
		cmd, said, _ := startHalting(t, dir, false, append(args, "--")...)
		recorder := &halted{pid: cmd.Process.Pid}
		touch(t, dir, "go")
		for range 10 {
			recorder.halt(t, true)
			time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
			recorder.halt(t, false)
			time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("record: %v\n%s", err, said)
		}
		contains(t, said.String(), "lost 0")
		wroteAll(t, dir)
	})
}
