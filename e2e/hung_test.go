// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestStoppedRecorder stops the recorder (SIGSTOP) and does not continue it: the program comes to its end, and the
// tape has all.
func TestStoppedRecorder(t *testing.T) {
	t.Parallel()
	writer := compiled(t, "writer")
	forWays(t, func(t *testing.T, way string, args []string) {
		dir := t.TempDir()
		args = append([]string{"record", "-o", "a.tape", "--ring", "1M", "--hold-max", "1s"}, args...)
		args = append(args, "--", writer, "ready", "go", "500")
		cmd := exec.Command(testenv.Iotape(t), args...)
		var said bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
		exists := func(name string) func() bool {
			return func() bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
		}
		if !eventually(exists("ready")) {
			t.Fatalf("the program does not begin:\n%s", said.String())
		}
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if !eventually(exists("go.end")) {
			t.Errorf("the program does not end while the recorder is stopped:\n%s", threads(cmd.Process.Pid))
		}
		_ = cmd.Process.Signal(syscall.SIGCONT)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("record: %v\n%s", err, said.String())
		}
		if text := said.String(); !strings.Contains(text, "the recorder was stopped for") ||
			!strings.Contains(text, "lost 0") {
			t.Errorf("the recorder says:\n%s", text)
		}
		check := exec.Command(testenv.Iotape(t), "check", "a.tape")
		check.Dir = dir
		if b, err := check.CombinedOutput(); err != nil {
			t.Errorf("check: %v\n%s", err, b)
		}
	})
}

// TestStalledOutput records to a pipe that nobody reads until the program has ended: it does not wait for that, and
// the stream says what is not in it.
func TestStalledOutput(t *testing.T) {
	testenv.Short(t, "it waits for outputs that accept nothing")
	t.Parallel()
	writer := compiled(t, "writer")
	forWays(t, func(t *testing.T, way string, args []string) {
		dir := t.TempDir()
		program, ended := startWriter(t, writer, dir)
		args = append([]string{"record", "--to", "-", "--hold-max", "1s", "--ring", "1M",
			"--pid", strconv.Itoa(program.Process.Pid)}, args...)
		cmd := exec.Command(testenv.Iotape(t), args...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill() }()
		first := make([]byte, 1) // of the stream: it describes the program
		if _, err := io.ReadFull(out, first); err != nil {
			t.Fatalf("record: %v\n%s", err, said.String())
		}
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the program: %v", err)
		}
		stream, err := os.Create(filepath.Join(dir, "a.stream"))
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		if _, err := io.Copy(stream, io.MultiReader(bytes.NewReader(first), out)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("record: %v\n%s", err, said.String())
		}
		if text := said.String(); !strings.Contains(text, "the output has accepted nothing for 1s") {
			t.Errorf("the recorder says:\n%s", text)
		}
		seal := exec.Command(testenv.Iotape(t), "seal", "a.stream", "-o", "a.tape")
		seal.Dir = dir
		if b, err := seal.CombinedOutput(); err != nil {
			t.Fatalf("seal: %v\n%s", err, b)
		}
		manifest, err := os.ReadFile(filepath.Join(dir, "a.tape", "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(manifest, []byte("the output accepted nothing")) {
			t.Errorf("the tape does not say what it lacks:\n%s", manifest)
		}
	}, "survive", "interpose") // which is for commands, whose standard output it cannot take
}

// startWriter starts the compiled program writer in a directory, where it makes the file ready, and waits for the
// file go before it writes. ended gets how it ended.
func startWriter(t *testing.T, writer, dir string) (program *exec.Cmd, ended <-chan error) {
	t.Helper()
	program = exec.Command(writer, "ready", "go", "500")
	program.Dir = dir
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- program.Wait() }()
	t.Cleanup(func() { _ = program.Process.Kill() })
	return program, end
}
