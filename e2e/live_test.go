// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
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

// contentOf returns what reads a file that may not be there yet.
func contentOf(name string) func() string {
	return func() string { b, _ := os.ReadFile(name); return string(b) }
}

// lineWithin waits until what a program prints has a text.
func lineWithin(t *testing.T, what string, printed func() string) {
	t.Helper()
	if !eventually(func() bool { return strings.Contains(printed(), what) }) {
		t.Fatalf("%q is not printed while the program runs:\n%s", what, printed())
	}
}

// TestLive sees the line of a call while the program waits for what the test does only then.
func TestLive(t *testing.T) {
	t.Parallel()
	const waits = `echo first > out; while ! [ -e go ]; do sleep 0.05; done; echo second > out; exit 7`
	for name, flags := range map[string][]string{
		"trace":  {"trace"},
		"json":   {"trace", "--json"},
		"record": {"record", "-o", "x.tape", "--print"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forBackends(t, func(t *testing.T, backend string) {
				dir := t.TempDir()
				lines := filepath.Join(dir, "lines")
				p := start(t, dir, append(slices.Clone(flags), "--print-to", "lines", "--backend", backend, "--filter",
					"op = write and path under "+dir, "--", "sh", "-c", waits)...)
				printed := contentOf(lines)
				lineWithin(t, `first`, printed)
				if strings.Contains(printed(), "second") {
					t.Error("the program did not wait")
				}
				if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				p.ends(t, 7)
				if n := strings.Count(printed(), "\n"); n != 2 || !strings.Contains(printed(), "second") {
					t.Errorf("%d lines, want 2:\n%s", n, printed())
				}
				if name != "record" {
					return
				}
				out, err := exec.Command(testenv.Iotape(t), "print", filepath.Join(dir, "x.tape"), "--filter",
					"op = write", "--time", "none").Output()
				if err != nil || strings.Count(string(out), "\n") != 2 {
					t.Errorf("the tape has other writes than were printed (%v):\n%s", err, out)
				}
			})
		})
	}
}

// TestLiveAttached traces a program that runs already, until Ctrl-C.
func TestLiveAttached(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"ebpf", "ptrace"} {
		t.Run(backend, func(t *testing.T) {
			if backend == "ebpf" {
				testenv.NeedBPF(t)
			}
			dir := t.TempDir()
			cmd := exec.Command("sh", "-c", "while :; do echo again > out; sleep 0.02; done")
			cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				_ = cmd.Wait()
			}()
			p := start(t, dir, "trace", "-p", fmt.Sprint(cmd.Process.Pid), "--backend", backend, "--print-to", "lines")
			lineWithin(t, `"again\n", 6) = 6`, contentOf(filepath.Join(dir, "lines")))
			p.signal(syscall.SIGINT)
			p.ends(t, 0)
			if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("the program has ended: %v", err)
			}
			if entries, _ := filepath.Glob(filepath.Join(dir, "*.tape*")); len(entries) > 0 {
				t.Errorf("a tape was made: %v", entries)
			}
		})
	}
}

// TestLiveSlowReader reads the lines of a program late: none is lost, and they keep their order.
func TestLiveSlowReader(t *testing.T) {
	testenv.Short(t, "it records for a while")
	t.Parallel()
	const writes = 20_000
	forBackends(t, func(t *testing.T, backend string) {
		cmd := exec.CommandContext(t.Context(), testenv.Iotape(t), "trace", "--backend", backend, "--ring", "1M",
			"--json", "--filter", "op = write and name = out", "--", "sh", "-c",
			fmt.Sprintf("exec 5>out; i=0; while [ $i -lt %d ]; do echo $i >&5; i=$((i+1)); done", writes))
		cmd.Dir = t.TempDir()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		cmd.Stderr = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		time.Sleep(500 * time.Millisecond) // the pipe is full long before
		next := 0
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			var e struct {
				Args struct{ Buf struct{ Data string } }
			}
			if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
				t.Fatalf("%v in %q", err, sc.Text())
			}
			if got := strings.TrimSpace(e.Args.Buf.Data); got != fmt.Sprint(next) {
				t.Fatalf("write %d has %q", next, got)
			}
			next++
		}
		if err := cmd.Wait(); err != nil || next != writes {
			t.Errorf("%d lines, want %d (%v)", next, writes, err)
		}
	})
}

// TestRecordingLimits ends recordings before their command.
func TestRecordingLimits(t *testing.T) {
	t.Parallel()
	const program = "exec 5>out; for i in 1 2 3 4 5; do echo $i >&5; done; " +
		"while ! [ -e go ]; do sleep 0.05; done; echo end >&5; exit 3"
	for _, limit := range [][]string{
		{"--max-events", "2"}, {"--until", "count = 2 and op = write"}, {"--max-size", "1"}, {"--duration", "1ms"},
	} {
		t.Run(limit[0], func(t *testing.T) {
			t.Parallel()
			forBackends(t, func(t *testing.T, backend string) {
				dir := t.TempDir()
				cmd := exec.CommandContext(t.Context(), testenv.Iotape(t), slices.Concat(
					[]string{"record", "-o", "x.tape", "--backend", backend}, limit,
					[]string{"--filter", "op = write and name = out", "--", "sh", "-c", program})...)
				cmd.Dir = dir
				said, err := os.Create(filepath.Join(dir, "said"))
				if err != nil {
					t.Fatal(err)
				}
				defer said.Close()
				cmd.Stderr = said
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				lineWithin(t, "the recording has ended; the command continues", contentOf(said.Name()))
				if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait()
				if got := cmd.ProcessState.ExitCode(); got != 3 {
					t.Errorf("exit status %d, want the command's, 3", got)
				}
				if b, err := os.ReadFile(filepath.Join(dir, "out")); string(b) != "1\n2\n3\n4\n5\nend\n" {
					t.Errorf("the command wrote %q (%v)", b, err)
				}
				out, err := exec.Command(testenv.Iotape(t), "print", filepath.Join(dir, "x.tape")).Output()
				if err == nil && strings.Contains(string(out), `"end\n"`) {
					t.Errorf("what came after the limit is recorded:\n%s", out)
				}
			})
		})
	}
}

// TestLiveInterrupted ends a traced command by Ctrl-C: its lines are all there, and the status is the command's.
func TestLiveInterrupted(t *testing.T) {
	t.Parallel()
	forBackends(t, func(t *testing.T, backend string) {
		dir := t.TempDir()
		p := start(t, dir, "trace", "--backend", backend, "--print-to", "lines", "--", "sh", "-c",
			": > ready; exec sleep 100")
		p.until(t, "ready")
		lineWithin(t, "/sleep", contentOf(filepath.Join(dir, "lines")))
		p.signal(syscall.SIGINT)
		p.ends(t, 128+int(syscall.SIGINT))
		lines := contentOf(filepath.Join(dir, "lines"))()
		for _, want := range []string{"--- SIGINT {si_signo=SIGINT, ", "+++ killed by SIGINT +++"} {
			if !strings.Contains(lines, want) {
				t.Errorf("the lines lack %q:\n%s", want, lines)
			}
		}
	})
}

// TestLiveReaderLeaves closes the pipe of the lines after the first: the command goes on to its end.
func TestLiveReaderLeaves(t *testing.T) {
	t.Parallel()
	forBackends(t, func(t *testing.T, backend string) {
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), testenv.Iotape(t), "trace", "--backend", backend, "--", "sh", "-c",
			"while ! [ -e go ]; do sleep 0.05; done; cat /etc/hostname > /dev/null; echo end > out; exit 9")
		cmd.Dir = dir
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if line, err := bufio.NewReader(r).ReadString('\n'); err != nil {
			t.Errorf("first line %q: %v", line, err)
		}
		r.Close()
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != 9 {
			t.Errorf("exit status %d (%v), want the command's, 9", got, cmd.ProcessState)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "out")); string(b) != "end\n" {
			t.Errorf("the command did not end as it would alone: it wrote %q (%v)", b, err)
		}
	})
}
