// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// receiver is an iotape receive that can be killed and started again.
type receiver struct {
	e       *env
	address string // as record --to takes it
	dir     string
	cmd     *exec.Cmd
	stderr  bytes.Buffer
}

func (e *env) receive(t *testing.T, address, dir string) *receiver {
	t.Helper()
	r := &receiver{e: e, address: address, dir: dir}
	r.start(t)
	t.Cleanup(r.kill)
	return r
}

func (r *receiver) start(t *testing.T) {
	t.Helper()
	r.cmd = exec.Command(r.e.iotape, "receive", r.address, "-o", r.dir)
	r.cmd.Stderr = &r.stderr
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		r.kill()
		t.Fatalf("receive: %v: %s", err, &r.stderr)
	}
	r.address = strings.TrimSpace(line)
}

func (r *receiver) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// stream returns the only stream that was received.
func (r *receiver) stream(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(r.dir, "*.stream"))
	if err != nil || len(names) != 1 {
		t.Fatalf("streams: %q, %v: %s", names, err, &r.stderr)
	}
	return names[0]
}

// TestReceiveKilled kills the listener while a recording goes to it, twice, and starts it
// again: the tape that comes of it is whole.
func TestReceiveKilled(t *testing.T) {
	testenv.Short(t, "it kills a program many times")
	t.Parallel()
	for _, scheme := range []string{"tcp://127.0.0.1:0", "unix:"} {
		t.Run(strings.Trim(scheme, ":/0127."), func(t *testing.T) {
			e := &env{iotape: testenv.Iotape(t), dir: t.TempDir()}
			if scheme == "unix:" {
				scheme += filepath.Join(e.dir, "socket")
			}
			r := e.receive(t, scheme, filepath.Join(e.dir, "streams"))
			cmd := exec.Command(e.iotape, "record", "--backend", "ptrace", "--pipe", "async,s2,block:4K,flush:10ms",
				"--to", r.address, "--", "sh", "-c",
				"for i in $(seq 40); do echo line-$i; sleep 0.05; done")
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				time.Sleep(700 * time.Millisecond)
				r.kill()
				time.Sleep(200 * time.Millisecond)
				r.start(t)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v: %s", err, &stderr)
			}
			contains(t, stdout.String(), "line-1\n")
			contains(t, stdout.String(), "line-40\n")
			contains(t, stderr.String(), "connected again")
			e.run(t, e.iotape, "pipe", "--check", r.stream(t))
			e.run(t, e.iotape, "repair", "-o", "a.tape", r.stream(t)) // status 1 if anything lacked
			out, _ := e.run(t, e.iotape, "print", "a.tape")
			for i := 1; i <= 40; i++ {
				if n := strings.Count(out, fmt.Sprintf("\"line-%d\\n\"", i)); n != 1 {
					t.Errorf("line %d is there %d times", i, n)
				}
			}
		})
	}
}

// TestListenerGone has a listener that does not come back: the command runs to its end
// all the same, with its own status, and iotape says that the recording is not whole.
func TestListenerGone(t *testing.T) {
	t.Parallel()
	e := &env{iotape: testenv.Iotape(t), dir: t.TempDir()}
	r := e.receive(t, "tcp://127.0.0.1:0", filepath.Join(e.dir, "streams"))
	cmd := exec.Command(e.iotape, "record", "--backend", "ptrace", "--to", r.address+"?spool=64K&give-up=500ms",
		"--pipe", "block:4K", "--", "sh", "-c",
		"touch begun; until [ -e gone ]; do sleep 0.01; done; "+
			"for i in 1 2 3 4; do head -c 1000000 /dev/urandom > f; done; echo finished; exit 7")
	cmd.Dir = e.dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { _, err := os.Stat(filepath.Join(e.dir, "begun")); return err == nil }) {
		t.Fatal("the recording does not begin")
	}
	r.kill()
	e.write(t, "gone", "")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 || stdout.String() != "finished\n" {
		t.Errorf("%v, output %q", err, &stdout)
	}
	contains(t, stderr.String(), "the recording is not whole")
	contains(t, stderr.String(), "given up after 500ms")
	contains(t, stderr.String(), "LOST ")
}

// TestNoClearText records a known text with encryption, onto a disk of its own on which
// temporary files are too, in each way: into a tape's directory, into a file, and to a
// listener that goes away, through a spool. The text is nowhere on the disk. Without
// encryption it is.
func TestNoClearText(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records for a while")
	testenv.NeedRoot(t)
	text := "known-" + strings.ToLower(rand.Text())
	// The command keeps its own file elsewhere.
	command := []string{"sh", "-c",
		"for i in $(seq 2000); do echo " + text + "; done > /dev/shm/$$; cat /dev/shm/$$ /dev/shm/$$ | wc -c; sleep 1; cat /dev/shm/$$ > /dev/null; rm /dev/shm/$$"}
	keys := t.TempDir()
	e := &env{iotape: testenv.Iotape(t), dir: keys}
	recipient, _ := e.run(t, e.iotape, "keygen", "-o", "reader.key")
	e.run(t, e.iotape, "keygen", "--checksum", "-o", "sum.key")
	encrypt := "async,encrypt:" + strings.TrimSpace(recipient) + ",checksum:@" + filepath.Join(keys, "sum.key")
	for _, tt := range []struct {
		name, chain string
		clear       bool
		to          string
	}{
		{"control", "async", true, "file"},
		{"tape", encrypt, false, ""},
		{"file", encrypt, false, "file"},
		{"spool", encrypt, false, "listener"},
		{"control of the spool", "async", true, "listener"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.clear {
				testenv.Short(t, "shows that the test would find clear text")
			}
			disk := testenv.MountImage(t, "ext4", 64)
			e := &env{iotape: testenv.Iotape(t), dir: disk, vars: []string{"TMPDIR=" + disk}}
			args := []string{e.iotape, "record", "--pipe", tt.chain}
			switch tt.to {
			case "":
				args = append(args, "-o", "a.tape")
			case "file":
				args = append(args, "--backend", "ptrace", "--to", "a.stream")
			case "listener":
				r := e.receive(t, "tcp://127.0.0.1:0", t.TempDir())
				args = append(args, "--to",
					r.address+"?spool=64K&spool-file="+filepath.Join(disk, "spool")+"&give-up=2s")
				go func() {
					time.Sleep(500 * time.Millisecond)
					_ = r.cmd.Process.Kill()
				}()
			}
			_, stderr, err := e.try(t, append(append(args, "--"), command...)...)
			if err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			if tt.to == "listener" {
				contains(t, stderr, "are in "+filepath.Join(disk, "spool"))
			}
			if got := onDisk(t, disk, text); got != tt.clear {
				t.Errorf("the text is on the disk: %v", got)
			}
		})
	}
}

// onDisk looks for a text in the image of a file system.
func onDisk(t *testing.T, disk, text string) bool {
	t.Helper()
	if out, err := exec.Command("sync", "-f", disk).CombinedOutput(); err != nil {
		t.Fatalf("sync: %v: %s", err, out)
	}
	image, err := os.ReadFile(filepath.Join(filepath.Dir(disk), "image"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(image, []byte(text))
}

// TestTailLive has events printed while the command still runs.
func TestTailLive(t *testing.T) {
	t.Parallel()
	e := &env{iotape: testenv.Iotape(t), dir: t.TempDir()}
	fifo := filepath.Join(e.dir, "go-on")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tail := exec.Command(e.iotape, "tail", "unix:"+filepath.Join(e.dir, "socket"))
	out, err := tail.StdoutPipe()
	if err == nil {
		err = tail.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tail.Process.Kill() }()
	eventually(func() bool { _, err := os.Stat(filepath.Join(e.dir, "socket")); return err == nil })
	record := exec.Command(e.iotape, "record", "--to", "unix:"+filepath.Join(e.dir, "socket"), "--pipe", "zstd", "--",
		"sh", "-c", "echo before > f; read x < go-on; echo after > f")
	record.Dir = e.dir
	if err := record.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = record.Process.Kill() }()
	lines := bufio.NewScanner(out)
	seen := ""
	for lines.Scan() {
		seen += lines.Text() + "\n"
		if strings.Contains(lines.Text(), `"before\n"`) { // the command waits, and we have seen it
			if err := os.WriteFile(fifo, []byte("now\n"), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	contains(t, seen, `"after\n"`)
	if err := record.Wait(); err != nil {
		t.Error(err)
	}
	if err := tail.Wait(); err != nil {
		t.Error(err)
	}
}

// TestFullDiskPiped records through layers onto a disk that fills up: the command goes
// on, and a valid tape comes of what was written.
func TestFullDiskPiped(t *testing.T) {
	testenv.Short(t, "it fills file systems")
	t.Parallel()
	for _, args := range [][]string{{"-o", "a.tape", "--pipe", "async,s2,checksum"},
		{"--to", "a.stream", "--pipe", "s2", "--backend", "ptrace"}} {
		t.Run(args[0], func(t *testing.T) {
			disk := testenv.MountImage(t, "tmpfs", 24)
			e := &env{iotape: testenv.Iotape(t), dir: disk}
			argv := append(append([]string{e.iotape, "record"}, args...), "--", "sh", "-c",
				"for i in 1 2 3 4; do head -c 8000000 /dev/urandom > /dev/shm/x.$$; done; rm /dev/shm/x.$$; echo "+
					"finished")
			stdout, stderr := e.run(t, argv...)
			if stdout != "finished\n" {
				t.Errorf("the command did not finish: %q", stdout)
			}
			contains(t, stderr, "iotape: the recording is not whole: ")
			contains(t, stderr, "no space left on device")
			if args[0] == "--to" {
				contains(t, stderr, "LOST ")
				elsewhere := filepath.Join(t.TempDir(), "a.tape")
				_, stderr, _ = e.try(t, e.iotape, "repair", "-o", elsewhere, "a.stream") // status 1: incomplete
				contains(t, stderr, "the stream is cut off at offset")
				e.run(t, e.iotape, "check", elsewhere)
				return
			}
			e.run(t, e.iotape, "check", "a.tape")
			if left, _ := filepath.Glob(filepath.Join(disk, "*.partial")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}
