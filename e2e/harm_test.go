package e2e

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"iotape/internal/testenv"
)

// compiled builds a C program of testdata/harm.
func compiled(t *testing.T, name string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	args := append([]string{"-O1", "-o", out, filepath.Join("testdata", "harm", name+".c"), "-pthread"}, flags...)
	if b, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", name, err, b)
	}
	return out
}

// TestKilledRecorder kills the recorder at random moments while it holds threads back
// nearly all the time: the program goes on, notices nothing, and what was recorded
// is repaired to a valid tape.
func TestKilledRecorder(t *testing.T) {
	testenv.NeedBPF(t)
	prog := compiled(t, "flatout")
	for _, kind := range []string{"handled", "blocked"} {
		t.Run(kind, func(t *testing.T) {
			for range 3 {
				killRecorder(t, prog, kind)
			}
		})
	}
}

func killRecorder(t *testing.T, prog, kind string) {
	dir := t.TempDir()
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testenv.Iotape(t), "record", "-o", "a.tape", "--backend", "ebpf", "--ring", "512K", "--", prog, files, "3")
	if kind == "blocked" {
		cmd.Args = append(cmd.Args, kind)
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // the program has our pipe
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pgid := cmd.Process.Pid
	for range 500 { // until it writes
		if m, _ := filepath.Glob(filepath.Join(files, "f*")); len(m) == 8 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Duration(rand.IntN(800)) * time.Millisecond)
	_ = cmd.Process.Kill() // the recorder alone
	_ = cmd.Wait()
	defer syscall.Kill(-pgid, syscall.SIGKILL)
	var said string
	for range 1000 {
		b, _ := os.ReadFile(out.Name())
		if said = string(b); said != "" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if said != "fine\n" {
		ps, _ := exec.Command("ps", "-eLo", "pid,tid,stat,wchan:20,comm").Output()
		var mine []string
		for line := range strings.Lines(string(ps)) {
			if strings.Contains(line, "flatout") {
				mine = append(mine, line)
			}
		}
		t.Fatalf("the program said %q\n%s%s", said, stderr.String(), strings.Join(mine, ""))
	}
	e := &env{iotape: testenv.Iotape(t), dir: dir}
	_, text, err := e.try(t, e.iotape, "repair", "a.tape.partial")
	if err == nil || err.Error() != "exit status 1" {
		t.Fatalf("repair: %v\n%s%s", err, stderr.String(), text)
	}
	contains(t, text, "the tape is incomplete: the recording did not end in order")
	e.run(t, e.iotape, "check", "a.tape")
	js, _ := e.run(t, e.iotape, "stat", "--json", "a.tape")
	contains(t, js, "did not end in order")
}
