// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// ways are how a program is recorded: the back ends, and ptrace without a filter.
var ways = []struct {
	name string
	args []string
	bpf  bool
}{
	{"ebpf", []string{"--backend", "ebpf", "--ring", "512K"}, true},
	{"ptrace", []string{"--backend", "ptrace"}, false},
	{"interpose", []string{"--backend", "interpose"}, false},
	{"survive", []string{"--backend", "ptrace", "--survive"}, false},
}

// forWays calls f for each way to record but those of except. With -short it calls it for one of
// them, in turn.
func forWays(t *testing.T, f func(t *testing.T, way string, args []string), except ...string) {
	var names []string
	for _, w := range ways {
		if w.name == "interpose" && !slices.Contains(backendsWithoutRights(), w.name) {
			continue // not for this architecture
		}
		if !slices.Contains(except, w.name) {
			names = append(names, w.name)
		}
	}
	names = inTurn(t, names)
	for _, w := range ways {
		if !slices.Contains(names, w.name) {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			if w.bpf {
				testenv.NeedBPF(t)
			}
			f(t, w.name, w.args)
		})
	}
}

// turns counts the calls of inTurn by each test.
var turns sync.Map

// inTurn returns all of a list. With -short it returns one of it: by the name of the test, and
// the next one at each call, so that all tests together use all of the list.
func inTurn(t *testing.T, list []string) []string {
	if !testing.Short() {
		return list
	}
	count, _ := turns.LoadOrStore(t.Name(), new(atomic.Uint32))
	turn := count.(*atomic.Uint32).Add(1) + crc32.ChecksumIEEE([]byte(t.Name()))
	return list[turn%uint32(len(list)):][:1]
}

// events calls f for each event of a tape.
func (e *env) events(t *testing.T, tape string, f func(ev *event.Event)) {
	t.Helper()
	tp, err := trace.Open(filepath.Join(e.dir, tape))
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	for ev, err := range tp.Events() {
		if err != nil {
			t.Fatal(err)
		}
		f(ev)
	}
}

// records records a command to a.tape and returns what it wrote, what iotape said, and
// the exit status.
func (e *env) records(t *testing.T, args []string, command ...string) (stdout, stderr string, status int) {
	t.Helper()
	os.RemoveAll(filepath.Join(e.dir, "a.tape"))
	argv := append([]string{e.iotape, "record", "-o", "a.tape", "--no-index"}, args...)
	stdout, stderr, err := e.try(t, append(append(argv, "--"), command...)...)
	if err != nil && exitStatus(err) < 0 {
		t.Fatalf("%v\n%s", err, stderr)
	}
	return stdout, stderr, exitStatus(err)
}

// lostNothing holds a recording to having lost nothing, by what it said, and shows by the tape what it lost.
func (e *env) lostNothing(t *testing.T, tape, said string) {
	t.Helper()
	if strings.Contains(said, "lost 0") {
		return
	}
	tp, err := trace.Open(filepath.Join(e.dir, tape))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	defer tp.Close()
	t.Errorf("it lost %+v, want nothing\n%s", tp.Manifest().Losses, said)
}

// onlyTraced are the programs of TestPrograms that a tracer could disturb, and eBPF less so.
var onlyTraced = []string{"job control", "calls that wait", "a segmentation fault", "a signal that is caught"}

// TestPrograms runs programs that do unusual things with processes, signals and
// privileges: recorded they write and end as they do alone.
func TestPrograms(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	confined, jobs, flatout := compiled(t, "confined"), compiled(t, "jobs"), compiled(t, "flatout")
	root := t.TempDir() // of a chroot
	if err := os.Rename(compiled(t, "secret", "-static"), filepath.Join(root, "secret")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(root, "file"), filepath.Join(root, "shadow")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name    string
		command []string
		stdout  string
		status  int
		called  string            // a name that a recorded call has
		differs map[string]string // by way: what it says instead
	}{
		{"strict seccomp", []string{confined, "strict"}, "confined\n", 0, "", map[string]string{"ptrace": ""}},
		{"a filter that makes calls fail", []string{confined, "errno"}, "confined\n", 0, "", nil},
		{"a filter that kills", []string{confined, "kill"}, "confined\n", 128 + int(syscall.SIGSYS), "", nil},
		{"job control", []string{jobs, "written"}, "fine\n", 0, "written", nil},
		{"calls that wait", []string{flatout, ".", "1"}, "fine\n", 0, "f0", nil},
		{"blocked signals", []string{flatout, ".", "1", "blocked"}, "fine\n", 0, "f0", nil},
		{"chroot", []string{"chroot", root, "/secret", "/file"}, "uid 0, secret read\n", 0, root + "/file", nil},
		{"a segmentation fault", []string{"sh", "-c", "echo before; kill -SEGV $$"}, "before\n", 128 + int(syscall.SIGSEGV), "", nil},
		{"a signal that is caught", []string{"sh", "-c", "trap 'echo caught; exit 9' TERM; kill -TERM $$"}, "caught\n", 9, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			forWays(t, func(t *testing.T, way string, args []string) {
				if way == "ebpf" && slices.Contains(onlyTraced, tt.name) {
					testenv.Short(t, "loads the eBPF programs for what they have no part in")
				}
				e := newEnv(t, testenv.Iotape(t), "", nil)
				want, status := tt.stdout, tt.status
				if other, ok := tt.differs[way]; ok {
					want, status = other, 3
				}
				stdout, stderr, got := e.records(t, args, tt.command...)
				if stdout != want || got != status {
					t.Errorf("it says %q with status %d, not %q with %d\n%s", stdout, got, want, status, stderr)
				}
				e.lostNothing(t, "a.tape", stderr)
				named := tt.called == ""
				e.events(t, "a.tape", func(ev *event.Event) {
					for _, p := range ev.Paths {
						named = named || p.Abs == tt.called || filepath.Base(p.Abs) == tt.called
					}
				})
				if !named {
					t.Errorf("no call names %s", tt.called)
				}
			})
		})
	}
}

// TestManyProcesses records 10,000 processes, each of which lives for a moment.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "makes 10,000 processes")
	forker := compiled(t, "forker")
	const n = 10_000
	forWays(t, func(t *testing.T, way string, args []string) {
		e := newEnv(t, testenv.Iotape(t), "", nil)
		_, stderr, status := e.records(t, args, forker, fmt.Sprint(n))
		if status != 0 {
			t.Errorf("status %d\n%s", status, stderr)
		}
		e.lostNothing(t, "a.tape", stderr)
		forks, alive, ended := 0, map[uint32]bool{}, map[int64]int{} // numbers of processes repeat
		e.events(t, "a.tape", func(ev *event.Event) {
			switch ev.Kind {
			case event.Forked:
				forks++
				alive[ev.Child] = true
				if ev.Args[0]&trace.ShareVM == 0 {
					t.Errorf("process %d shares no memory with its vfork", ev.Child)
				}
			case event.Exited:
				if alive[ev.TID] {
					delete(alive, ev.TID)
					ended[ev.Ret>>8]++
				}
			}
		})
		if forks != n {
			t.Errorf("%d forks, want %d", forks, n)
		}
		for i := range int64(128) {
			want := n / 128
			if i < n%128 {
				want++
			}
			if ended[i] != want {
				t.Errorf("%d processes ended with %d, want %d", ended[i], i, want)
			}
		}
	})
}

// TestProcessesAndThreads records fork, vfork, posix_spawn and threads, all at once.
func TestProcessesAndThreads(t *testing.T) {
	t.Parallel()
	forker := compiled(t, "forker")
	forWays(t, func(t *testing.T, way string, args []string) {
		e := newEnv(t, testenv.Iotape(t), "", nil)
		stdout, stderr, status := e.records(t, args, forker, ".", "1")
		if stdout != "fine\n" || status != 0 {
			t.Errorf("it says %q, status %d\n%s", stdout, status, stderr)
		}
		e.lostNothing(t, "a.tape", stderr)
		alive, execs := map[uint32]bool{}, 0
		e.events(t, "a.tape", func(ev *event.Event) {
			switch {
			case ev.Kind == event.Forked:
				alive[ev.Child] = true
			case ev.Kind == event.Exited:
				delete(alive, ev.TID)
			case ev.Op == event.OpExecve && ev.Errno == 0:
				execs++
			}
		})
		if len(alive) != 0 || execs < 2 {
			t.Errorf("%d of the made did not end, %d execs", len(alive), execs)
		}
	})
}

// TestSetuid runs a setuid program: it has its privileges if the recorder may give
// them, and not if an ordinary user traces it.
func TestSetuid(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "setpriv")
	cred := testenv.NeedUser(t)
	dir := testenv.UserDir(t, cred)
	prog, secret := filepath.Join(dir, "secret"), filepath.Join(dir, "shadow")
	b, err := os.ReadFile(compiled(t, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.WriteFile(prog, b, 0o755), os.Chmod(prog, 0o755|os.ModeSetuid),
		os.WriteFile(secret, nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	asUser := []string{"setpriv", "--reuid", fmt.Sprint(cred.Uid), "--clear-groups", prog, secret}
	if out, err := exec.Command(asUser[0], asUser[1:]...).Output(); err != nil ||
		string(out) != "uid 0, secret read\n" {
		t.Skipf("needs a file system with setuid programs: %q, %v", out, err)
	}
	forWays(t, func(t *testing.T, way string, args []string) {
		e := newEnv(t, testenv.Iotape(t), "", nil)
		if stdout, stderr, _ := e.records(t, args, asUser...); stdout != "uid 0, secret read\n" {
			t.Errorf("recorded by root it says %q\n%s", stdout, stderr)
		}
		if way == "ebpf" {
			return
		}
		e = &env{iotape: testenv.IotapeFor(t, cred), dir: testenv.UserDir(t, cred), cred: cred}
		stdout, stderr, _ := e.records(t, args, prog, secret)
		if stdout != "uid user, secret refused\n" ||
			!strings.Contains(stderr, prog+" runs without the rights of root") {
			t.Errorf("recorded by a user it says %q\n%s", stdout, stderr)
		}
	})
}

// TestOutlives records a process tree whose first process ends before the others: the
// recording lasts until the last has ended.
func TestOutlives(t *testing.T) {
	t.Parallel()
	forWays(t, func(t *testing.T, way string, args []string) {
		e := newEnv(t, testenv.Iotape(t), "", nil)
		_, stderr, status := e.records(t, args, "sh", "-c",
			`setsid sh -c "sleep 1; echo late > late" >/dev/null 2>&1 & exit 5`)
		if status != 5 {
			t.Errorf("status %d\n%s", status, stderr)
		}
		written := false
		e.events(t, "a.tape", func(ev *event.Event) {
			written = written || ev.Op == event.OpWrite && len(ev.Files) > 0 &&
				filepath.Base(ev.Files[0].Path) == "late"
		})
		if !written {
			t.Error("what came after the first process's end is not recorded")
		}
	})
}

// TestOutlivesInterrupted ends the recording of such a tree by Ctrl-C: what is left of
// it lives on. Not with the filter of ptrace, which needs the recorder to the end.
func TestOutlivesInterrupted(t *testing.T) {
	t.Parallel()
	forWays(t, func(t *testing.T, _ string, args []string) {
		dir := t.TempDir()
		p := start(t, dir, append(append([]string{"record", "-o", "a.tape"}, args...), "--",
			"sh", "-c", `setsid sh -c "echo > ready; sleep 2; grep TracerPid /proc/self/status > out; mv out `+
				`late" >/dev/null 2>&1 & exit 5`)...)
		p.until(t, "ready")
		time.Sleep(100 * time.Millisecond)
		p.signal(syscall.SIGINT)
		p.ends(t, 5)
		contains(t, p.stderr.String(), "sealed in")
		p.until(t, "late")
		if b, err := os.ReadFile(filepath.Join(dir, "late")); string(b) != "TracerPid:\t0\n" {
			t.Errorf("afterwards: %q, %v", b, err)
		}
	}, "ptrace")
}

// TestContainer records a program in namespaces of its own: process numbers in the
// tape are those of the host.
func TestContainer(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "unshare")
	forWays(t, func(t *testing.T, way string, args []string) {
		e := newEnv(t, testenv.Iotape(t), "", nil)
		stdout, stderr, status := e.records(t, args, "unshare", "-pfmn", "--mount-proc", "sh", "-c",
			"echo $$; head -c 20000000 /dev/zero > zeros; exit 4")
		if stdout != "1\n" || status != 4 {
			t.Errorf("it says %q, status %d\n%s", stdout, status, stderr)
		}
		e.lostNothing(t, "a.tape", stderr)
		pids := map[uint32]bool{}
		var zeros int64
		e.events(t, "a.tape", func(ev *event.Event) {
			pids[ev.PID] = true
			if ev.Op == event.OpWrite && len(ev.Files) > 0 && filepath.Base(ev.Files[0].Path) == "zeros" {
				zeros += ev.Ret
			}
		})
		if pids[1] || len(pids) < 3 || zeros != 20000000 {
			t.Errorf("processes %v, %d bytes written", pids, zeros)
		}
	})
}

// TestTracers records programs that trace others: the kernel has them refused, and
// that is said.
func TestTracers(t *testing.T) {
	t.Parallel()
	tracer := compiled(t, "tracer")
	forWays(t, func(t *testing.T, way string, args []string) {
		e := newEnv(t, testenv.Iotape(t), "", nil)
		for _, command := range [][]string{{tracer}, {tracer, "me"}} {
			stdout, stderr, status := e.records(t, args, command...)
			if stdout != "Operation not permitted\n" || status != 0 {
				t.Errorf("it says %q, status %d\n%s", stdout, status, stderr)
			}
			contains(t, stderr, "iotape: 1 request to trace a program was refused: ")
		}
	})
}

// TestTraced records below another tracer.
func TestTraced(t *testing.T) {
	t.Parallel()
	testenv.NeedProgram(t, "strace")
	forWays(t, func(t *testing.T, way string, args []string) {
		e := newEnv(t, testenv.Iotape(t), "", nil)
		argv := append([]string{"strace", "-f", "-o", "/dev/null", e.iotape, "record", "-o", "a.tape"}, args...)
		_, stderr, err := e.try(t, append(argv, "--", "true")...)
		if exitStatus(err) != 125 {
			t.Errorf("%v", err)
		}
		contains(t, stderr, "(strace) traces it already, and there can be only one\n")
		if n := strings.Count(stderr, "\n"); n != 1 {
			t.Errorf("%d lines:\n%s", n, stderr)
		}
		if left, _ := filepath.Glob(filepath.Join(e.dir, "a.tape*")); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}

// exitStatus returns the exit status in a command's error, -1 if there is none in it.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	return -1
}
