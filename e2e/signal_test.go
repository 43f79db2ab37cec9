// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// process is a running iotape in a process group of its own, as a shell gives it
// one.
type process struct {
	*exec.Cmd
	dir            string
	stdout, stderr bytes.Buffer
}

func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return (&env{dir: dir}).launch(t, args...)
}

// launch starts iotape in the environment's directory.
func (e *env) launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), testenv.Iotape(t), args...), dir: e.dir}
	p.Dir, p.Env, p.Stdout, p.Stderr = e.dir, e.environ(), &p.stdout, &p.stderr
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.signal(syscall.SIGKILL) })
	return p
}

// signal sends a signal to the whole group, as a terminal does.
func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.Process.Pid, s) }

// until waits for a file of the process's directory.
func (p *process) until(t *testing.T, name string) {
	t.Helper()
	if eventually(func() bool { _, err := os.Stat(filepath.Join(p.dir, name)); return err == nil }) {
		return
	}
	p.signal(syscall.SIGKILL)
	p.Wait()
	t.Fatalf("%s does not appear\n%s%s", name, &p.stdout, &p.stderr)
}

// ends waits for the process and holds its status against want.
func (p *process) ends(t *testing.T, want int) {
	t.Helper()
	p.Wait()
	if got := p.ProcessState.ExitCode(); got != want {
		t.Errorf("exit status %d, want %d\n%s%s", got, want, &p.stdout, &p.stderr)
	}
	if strings.Contains(p.stderr.String(), "goroutine ") {
		t.Errorf("stack trace:\n%s", &p.stderr)
	}
}

func forBackends(t *testing.T, f func(t *testing.T, backend string), except ...string) {
	names := append([]string{"ebpf"}, backendsWithoutRights()...)
	names = slices.DeleteFunc(names, func(b string) bool { return slices.Contains(except, b) })
	for _, b := range inTurn(t, names) {
		t.Run(b, func(t *testing.T) {
			if b == "ebpf" {
				testenv.NeedBPF(t)
			}
			f(t, b)
		})
	}
}

// TestInterruptRecord presses Ctrl-C while a command runs that dies of it, and one
// that catches it: the command gets it, the tape is sealed.
func TestInterruptRecord(t *testing.T) {
	testenv.Short(t, "it interrupts many recordings")
	t.Parallel()
	forBackends(t, func(t *testing.T, backend string) {
		dir := t.TempDir()
		p := start(t, dir, "record", "-o", "a.tape", "--backend", backend, "--", "sh", "-c", "echo > ready; sleep 60")
		p.until(t, "ready")
		p.signal(syscall.SIGINT)
		p.ends(t, 128+2)
		contains(t, p.stderr.String(), "lost 0; sealed in")

		// A child that has not begun its program yet has the handler, and would lose the signal.
		p = start(t, dir, "record", "-o", "b.tape", "--backend", backend, "--",
			"sh", "-c", "trap 'echo caught > caught; exit 7' INT; sh -c 'echo > ready2; exec sleep 60'")
		p.until(t, "ready2")
		p.signal(syscall.SIGINT)
		p.ends(t, 7)
		if _, err := os.Stat(filepath.Join(dir, "caught")); err != nil {
			t.Error("the command did not get the signal")
		}
		e := &env{iotape: testenv.Iotape(t), dir: dir}
		for _, tape := range []string{"a.tape", "b.tape"} {
			e.run(t, e.iotape, "check", tape)
			e.perfect(t, tape)
		}
		out, _ := e.run(t, e.iotape, "print", "a.tape")
		contains(t, out, "+++ killed by SIGINT +++")
	})
}

// TestTerminateRecord sends SIGTERM to iotape alone: it passes it on.
func TestTerminateRecord(t *testing.T) {
	t.Parallel()
	forBackends(t, func(t *testing.T, backend string) {
		p := start(t, t.TempDir(), "record", "-o", "a.tape", "--backend", backend, "--", "sh", "-c",
			"echo > ready; exec sleep 60")
		p.until(t, "ready")
		p.Process.Signal(syscall.SIGTERM)
		p.ends(t, 128+15)
		contains(t, p.stderr.String(), "sealed in")
	})
}

// TestKillRecord kills iotape itself: what was recorded can be sealed.
func TestKillRecord(t *testing.T) {
	t.Parallel()
	forBackends(t, func(t *testing.T, backend string) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "src"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "src", "f"), []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
		p := start(t, dir, "record", "-o", "a.tape", "--backend", backend, "--snapshot", "src", "--",
			"sh", "-c", "echo marked > marker; sleep 0.5; echo > ready; sleep 60")
		p.until(t, "ready")
		p.Process.Kill()
		time.Sleep(100 * time.Millisecond)
		p.signal(syscall.SIGKILL) // the command: with eBPF it outlives its recorder
		p.Wait()
		e := &env{iotape: testenv.Iotape(t), dir: dir}
		_, stderr := e.run(t, e.iotape, "seal", "a.tape.partial")
		t.Log(stderr)
		e.run(t, e.iotape, "check", "a.tape")
		out, _ := e.run(t, e.iotape, "print", "a.tape")
		contains(t, out, `"marked\n", 7) = 7`)
		out, _ = e.run(t, e.iotape, "stat", "a.tape")
		contains(t, out, "the recording did not end in order")
		if _, err := os.Stat(filepath.Join(dir, "a.tape", "snapshot")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "a.tape.partial")); err == nil {
			t.Error("a.tape.partial is still there")
		}
	})
}

// TestInterruptSealing presses Ctrl-C until a long sealing stops, and seals later.
func TestInterruptSealing(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "records something long")
	dir := t.TempDir()
	p := start(t, dir, "record", "-o", "a.tape", "--backend", "ptrace", "--",
		"sh", "-c", "dd if=/dev/urandom of=random bs=1M count=300 2>/dev/null; echo > ready")
	p.until(t, "ready")
	p.until(t, "a.tape.partial/tape")
	for range 100 {
		p.signal(syscall.SIGINT)
		time.Sleep(10 * time.Millisecond)
		if p.ProcessState != nil {
			break
		}
	}
	p.ends(t, 125)
	contains(t, p.stderr.String(), "iotape: sealing was stopped\n")
	contains(t, p.stderr.String(), "hint: the recording is kept; to seal it later: iotape seal a.tape.partial\n")
	if _, err := os.Stat(filepath.Join(dir, "a.tape")); err == nil {
		t.Error("a.tape is there")
	}
	e := &env{iotape: testenv.Iotape(t), dir: dir}
	e.run(t, e.iotape, "seal", "a.tape.partial")
	e.run(t, e.iotape, "check", "a.tape")
	e.perfect(t, "a.tape")
}

// TestInterruptReplay presses Ctrl-C during a replay.
func TestInterruptReplay(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "replays something long")
	dir := t.TempDir()
	e := &env{iotape: testenv.Iotape(t), dir: dir}
	e.run(t, e.iotape, "record", "-o", "a.tape", "--", "sh", "-c",
		"dd if=/dev/zero of=big bs=512 count=300000 2>/dev/null")
	p := start(t, dir, "replay", "a.tape", "--into", "out", "--verify")
	p.until(t, filepath.Join("out", dir, "big"))
	p.signal(syscall.SIGINT)
	p.ends(t, 2)
	contains(t, p.stderr.String(), "iotape: replay was interrupted; ")
	// which a slow machine gets to see
	said := strings.Count(p.stderr.String(), "\n") - strings.Count(p.stderr.String(), "iotape: replaying: ")
	if said != 1 {
		t.Errorf("%d lines on standard error:\n%s", said, &p.stderr)
	}
}

func contains(t *testing.T, s, want string) {
	t.Helper()
	if !strings.Contains(s, want) {
		t.Errorf("no %q in:\n%s", want, s[:min(len(s), 4000)])
	}
}
