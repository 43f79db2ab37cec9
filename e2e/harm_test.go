// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
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

	"github.com/iotape/iotape/internal/testenv"
)

// compiled builds a C program of testdata/harm.
func compiled(t *testing.T, name string, flags ...string) string {
	t.Helper()
	testenv.NeedProgram(t, "gcc")
	out := filepath.Join(t.TempDir(), name)
	args := append([]string{"-O1", "-o", out, filepath.Join("testdata", "harm", name+".c"), "-pthread"}, flags...)
	if b, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", name, err, b)
	}
	return out
}

// kills is how often a test kills what it is about.
const kills = 3

// recorderKills is how often TestKilledRecorder kills the recorder of each program. The environment
// variable IOTAPE_REPEAT says otherwise.
var recorderKills = map[string]int{"ebpf": 2, "interpose": 3}

// TestKilledRecorder kills the recorder at random moments, with eBPF while it holds threads back
// nearly all the time: the program goes on, notices nothing, and what was recorded
// is repaired to a valid tape.
func TestKilledRecorder(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "kills many recordings")
	flatout, forker, execs := compiled(t, "flatout"), compiled(t, "forker"), compiled(t, "execs")
	tests := []struct {
		name    string
		command []string
		files   int // that it writes to from its start
		end     string
	}{
		{"signals handled", []string{flatout, "files", "2"}, 8, "end\n"},
		{"signals blocked", []string{flatout, "files", "2", "blocked"}, 8, "end\n"},
		{"processes and threads", []string{forker, "files", "2"}, 6, ""},
		{"programs", []string{execs, "files", "2"}, 1, "end\n"},
	}
	forWays(t, func(t *testing.T, way string, args []string) {
		n := recorderKills[way]
		if repeat, err := strconv.Atoi(os.Getenv("IOTAPE_REPEAT")); err == nil {
			n = repeat
		}
		for _, tt := range tests {
			for i := range n {
				t.Run(fmt.Sprint(tt.name, i), func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					said := killRecorder(t, dir, tt.files, args, tt.command)
					if said != "fine\n" {
						t.Errorf("the program says %q", said)
					}
					for i := range tt.files {
						b, err := os.ReadFile(filepath.Join(dir, "files", fmt.Sprintf("f%d", i)))
						if err != nil || !bytes.HasSuffix(b, []byte(tt.end)) {
							t.Errorf("thread %d did not come to its end: %v", i, err)
						}
					}
					repaired(t, dir)
				})
			}
		}
	}, "ptrace", "survive")
}

// killRecorder records a command in dir, kills the recorder, and returns what the
// command says at its end.
func killRecorder(t *testing.T, dir string, files int, args, command []string) string {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	args = append(append([]string{"record", "-o", "a.tape"}, args...), "--")
	cmd := exec.Command(testenv.Iotape(t), append(args, command...)...)
	cmd.Dir, cmd.Stdout = dir, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pgid := cmd.Process.Pid
	t.Cleanup(func() { _ = syscall.Kill(-pgid, syscall.SIGKILL) })
	appear := func() bool {
		m, _ := filepath.Glob(filepath.Join(dir, "files", "f*"))
		return len(m) == files
	}
	if !eventually(appear) {
		t.Fatal("the program does not begin")
	}
	time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
	_ = cmd.Process.Kill() // the recorder alone
	_ = cmd.Wait()
	var said []byte
	if !eventually(func() bool { said, _ = os.ReadFile(out.Name()); return len(said) > 0 }) {
		t.Errorf("the program does not end:\n%s", threads(pgid))
	}
	return string(said)
}

// eventually waits for something that happens soon, on a machine however busy.
func eventually(happened func() bool) bool {
	for range 6000 {
		if happened() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// threads lists the threads of a process group.
func threads(pgid int) string {
	ps, _ := exec.Command("ps", "-eLo", "pgid,pid,tid,stat,wchan:20,comm").Output()
	var list strings.Builder
	for line := range strings.Lines(string(ps)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == fmt.Sprint(pgid) {
			list.WriteString(line)
		}
	}
	return list.String()
}

// repaired makes a tape of what a killed recorder left in dir.
func repaired(t *testing.T, dir string) {
	t.Helper()
	e := &env{iotape: testenv.Iotape(t), dir: dir}
	_, text, err := e.try(t, e.iotape, "repair", "a.tape.partial")
	if err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Fatalf("repair: %v\n%s", err, text)
	}
	contains(t, text, "the tape is incomplete: the recording did not end in order")
	e.run(t, e.iotape, "check", "a.tape")
	js, _ := e.run(t, e.iotape, "stat", "--json", "a.tape")
	contains(t, js, "did not end in order")
}
