// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// namesIn returns the names in a directory.
func namesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestTemporaryFiles runs every command with a TMPDIR of its own: nothing is left in it.
func TestTemporaryFiles(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it runs every command")
	h := newHostile(t)
	temp := t.TempDir()
	for _, line := range everyCommand {
		cmd := h.line(t, line)
		cmd.Env = append(cmd.Env, "TMPDIR="+temp, "XDG_RUNTIME_DIR="+h.dir)
		_ = cmd.Run() // some fail
		if names := namesIn(t, temp); names != "" {
			t.Fatalf("%s leaves %s in its TMPDIR", line, names)
		}
	}
}

// TestTemporaryFilesOfKilled ends commands that have temporary files. SIGTERM ends them, though nobody
// reads what they write, and removes the files. What SIGKILL leaves is removed by the next command of the same kind,
// which leaves alone what others use.
func TestTemporaryFilesOfKilled(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it kills each command")
	dir := t.TempDir()
	record := exec.Command(testenv.Iotape(t), "record", "--backend", "ptrace", "--keep-stream", "-o", "a.tape", "--",
		"sh", "-c", "for i in $(seq 1000); do echo $i > f$i; done")
	record.Dir = dir
	if out, err := record.CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
	for _, line := range []string{"print a.stream", "query a.tape SELECT~*~FROM~events"} {
		t.Run(strings.Fields(line)[0], func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			// start begins a command that waits, because nobody reads what it writes.
			start := func() *exec.Cmd {
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				t.Cleanup(func() { r.Close() })
				args := strings.Fields(line)
				for i := range args {
					args[i] = strings.ReplaceAll(args[i], "~", " ")
				}
				cmd := exec.Command(testenv.Iotape(t), args...)
				cmd.Dir, cmd.Stdout, cmd.Env = dir, w, append(os.Environ(), "TMPDIR="+temp)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cmd.Process.Kill() })
				return cmd
			}
			are := func(n int, when string) {
				t.Helper()
				if !eventually(func() bool { return len(strings.Fields(namesIn(t, temp))) == n }) {
					t.Fatalf("%s, TMPDIR has %q; want %d names", when, namesIn(t, temp), n)
				}
			}
			end := func(cmd *exec.Cmd, sig syscall.Signal) {
				_ = cmd.Process.Signal(sig)
				if err := cmd.Wait(); err == nil {
					t.Errorf("after signal %d the command succeeds, without its output", sig)
				}
			}
			killed := start()
			are(1, "while one runs")
			left := namesIn(t, temp)
			used := start()
			are(2, "while two run")
			end(killed, syscall.SIGKILL)
			next := start()
			if !eventually(func() bool { return !strings.Contains(namesIn(t, temp), left) }) {
				t.Fatalf("the next command does not remove %s", left)
			}
			are(2, "after the next has begun")
			end(next, syscall.SIGTERM)
			are(1, "after SIGTERM")
			end(used, syscall.SIGTERM)
			are(0, "after the last one")
		})
	}
}
