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
	return startReady(t, dir, writer, "ready", "go", "500")
}

// startReady starts a program in a directory.
func startReady(t *testing.T, dir string, argv ...string) (program *exec.Cmd, ended <-chan error) {
	t.Helper()
	program = exec.Command(argv[0], argv[1:]...)
	program.Dir, program.Stderr = dir, os.Stderr
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- program.Wait() }()
	t.Cleanup(func() { _ = program.Process.Kill() })
	return program, end
}

// TestHungRecorder has programs wait for a recorder that cannot go on, though nobody stopped it: it reads memory of a
// program that cannot be read. The program goes on, and the tape says what it lacks.
func TestHungRecorder(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	hung, dir := compiled(t, "hung"), t.TempDir()
	program, ended := startReady(t, dir, hung, "ready", "go")
	cmd, said := startOver(t, dir, "--hold-max", "1s", "--pid", strconv.Itoa(program.Process.Pid))
	touch(t, dir, "go")
	if err := <-ended; err != nil {
		t.Errorf("the program: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("record: %v\n%s", err, said)
	}
	contains(t, said.String(), "the recorder cannot read what a program left for it")
	tapeLacks(t, filepath.Join(dir, "a.tape"), "the recorder could not read content in time")
}

// TestFrozenOutput records to a file system in user space whose server is stopped.
func TestFrozenOutput(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it waits for an output that accepts nothing")
	writer := compiled(t, "writer")
	m := startMount(t)
	program, ended := startWriter(t, writer, m.dir)
	cmd := exec.Command(m.iotape, "record", "-o", "mnt/b.tape", "--hold-max", "1s", "--ring", "1M",
		"--pid", strconv.Itoa(program.Process.Pid))
	said := &lockedBuffer{}
	cmd.Dir, cmd.Stderr = m.dir, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	begun(t, said)
	if err := m.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.cmd.Process.Signal(syscall.SIGCONT) }()
	touch(t, m.dir, "go")
	if err := <-ended; err != nil {
		t.Errorf("the program: %v", err)
	}
	_ = m.cmd.Process.Signal(syscall.SIGCONT)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("record: %v\n%s", err, said)
	}
	contains(t, said.String(), "the output has accepted nothing for 1s")
	tapeLacks(t, m.path("lower/b.tape"), "the output accepted nothing")
}

// startOver starts to record programs that run, with eBPF, and waits until it does.
func startOver(t *testing.T, dir string, args ...string) (*exec.Cmd, *lockedBuffer) {
	t.Helper()
	cmd := exec.Command(testenv.Iotape(t), append([]string{"record", "-o", "a.tape", "--backend", "ebpf", "--ring",
		"1M"}, args...)...)
	said := &lockedBuffer{}
	cmd.Dir, cmd.Stderr = dir, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	begun(t, said)
	return cmd, said
}

// begun waits until a recorder of what runs has begun, whose words are given.
func begun(t *testing.T, said *lockedBuffer) {
	t.Helper()
	if !eventually(func() bool { return strings.Contains(said.String(), "end it with SIGINT") }) {
		t.Fatalf("the recorder does not begin:\n%s", said)
	}
}

// touch makes an empty file.
func touch(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// tapeLacks requires that a tape is whole, and says why records are missing.
func tapeLacks(t *testing.T, tape, reason string) {
	t.Helper()
	if b, err := exec.Command(testenv.Iotape(t), "check", tape).CombinedOutput(); err != nil {
		t.Errorf("check: %v\n%s", err, b)
	}
	manifest, err := os.ReadFile(filepath.Join(tape, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(manifest), reason)
}

// TestMountExec executes a program while a descriptor of a file in a mount is open, which execve closes: the kernel
// lets nobody read some files of /proc/PID then, and the mount has to answer all the same.
func TestMountExec(t *testing.T) {
	t.Parallel()
	m := startMount(t)
	m.sh(t, `echo x >a; timeout -s KILL 60 python3 -c '
import subprocess
f = open("a")
for i in range(3): subprocess.run(["true"], close_fds=False, check=True)'`)
	m.unmount(t, m.path("mnt"))
	m.end(t)
	if out, _ := m.run(t, m.iotape, "print", "a.tape"); !strings.Contains(out, "close(") {
		t.Errorf("no close in:\n%s", out)
	}
}
