// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/internal/testenv"
)

// containerID is that of no container.
var containerID = strings.Repeat("0123456789abcdef", 4)

// containerCgroup makes a control group that is named as one of Docker's.
func containerCgroup(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(testenv.Cgroup(t), "docker-"+containerID+".scope")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	return dir
}

// described returns what a tape says of processes: the text of each, without the inode numbers of namespaces that are
// not this test's, and the environment.
func (e *env) described(t *testing.T, tape string) (list []string) {
	t.Helper()
	e.events(t, tape, func(ev *event.Event) {
		if ev.Kind != event.Described {
			return
		}
		env, _ := facts.Env(ev)
		slices.Sort(env)
		text := strings.ReplaceAll(string(facts.Of(ev).Append(nil)), "\x00", "\n")
		list = append(list, text+strings.Join(env, " "))
	})
	return list
}

// TestProcessFacts: every back end says the same of where processes run and with what, and keeps values of the
// environment only if it is told to.
func TestProcessFacts(t *testing.T) {
	testenv.NeedRoot(t)
	group := containerCgroup(t)
	e := runEnv(t)
	const value = "not-for-others"
	// The value stands in no argument.
	const program = `echo $$ > "$0/cgroup.procs"; cd /usr; export PAPER=not-for""-others; umask 0
exec env -u LANG sh -c '(cd lib; exec true); exec cat /dev/null'`
	want := map[string][]string{}
	forBackends(t, func(t *testing.T, backend string) {
		for _, mode := range []string{"names", "all", "none"} {
			name := backend + "-" + mode
			e.run(t, e.iotape, "record", "-o", name+".tape", "--keep-stream", "--backend", backend, "--env", mode, "--",
				"sh", "-c", program, group)
			got := e.described(t, name+".tape")
			if len(got) != 6 { // sh, moved to the group, env, sh, true, cat
				t.Fatalf("%s: processes are described %d times, want 6: %q", mode, len(got), got)
			}
			if want[mode] == nil {
				want[mode] = got
			} else if !slices.Equal(got, want[mode]) {
				t.Errorf("%s: the processes are\n%s\nwant as the other back ends have it\n%s", mode,
					strings.Join(got, "\n\n"), strings.Join(want[mode], "\n\n"))
			}
			last := got[len(got)-1]
			if !strings.Contains(last, "/docker-"+containerID+".scope\n") || !strings.Contains(last, "cwd=/usr\n") ||
				!strings.Contains(last, "ns:mnt=") || !strings.Contains(last, "caps=") {
				t.Errorf("%s: the last process is described by\n%s", mode, last)
			}
			if has := strings.Contains(last, "PAPER"); has != (mode != "none") {
				t.Errorf("%s: the name of the variable is there: %v", mode, has)
			}
			stream, err := os.ReadFile(filepath.Join(e.dir, name+".stream"))
			if err != nil {
				t.Fatal(err)
			}
			if has := bytes.Contains(stream, []byte(value)); has != (mode == "all") {
				t.Errorf("%s: the value of the variable is in the stream: %v", mode, has)
			}
		}
	})
}

// TestProcessChanges: where a process runs, and with what, is as it is at each call, also if that changes after its
// execve.
func TestProcessChanges(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "python3")
	group := containerCgroup(t)
	e := runEnv(t)
	const program = `
import os, sys
def mark(name): os.access(name, 0)
mark("before")
with open(sys.argv[1] + "/cgroup.procs", "w") as f: f.write("0")
mark("moved")
child = os.fork()
if child == 0:
    mark("child")
    os.setgroups([7, 8])
    os.setresgid(4, 5, 6)
    os.setresuid(1, 2, 3)
    mark("dropped")
    os._exit(0)
os.wait()
mark("after")
`
	forBackends(t, func(t *testing.T, backend string) {
		name := backend + ".tape"
		e.run(t, e.iotape, "record", "-o", name, "--backend", backend, "--", "python3", "-c", program, group)
		var known facts.Tracker
		marks := map[string]facts.Process{}
		e.events(t, name, func(ev *event.Event) {
			known.See(ev)
			if ev.Op == event.OpAccess || ev.Op == event.OpFaccessat2 {
				marks[ev.Paths[0].Raw] = *known.Of(ev.Host, ev.PID).Process
			}
		})
		for mark, inside := range map[string]bool{
			"before": false, "moved": true, "child": true, "dropped": true, "after": true,
		} {
			f := marks[mark]
			uid, gid, groups := facts.IDs{}, facts.IDs{}, []uint32(nil)
			if mark == "dropped" {
				uid = facts.IDs{Real: 1, Effective: 2, Saved: 3, FS: 2}
				gid = facts.IDs{Real: 4, Effective: 5, Saved: 6, FS: 5}
				groups = []uint32{7, 8}
			}
			if got := facts.Container(f.Cgroup) == containerID; got != inside {
				t.Errorf("%s: the control group is %q; want the container's: %v", mark, f.Cgroup, inside)
			}
			if f.UID == nil || *f.UID != uid || f.GID == nil || *f.GID != gid || mark == "dropped" &&
				!slices.Equal(f.Groups, groups) {
				t.Errorf("%s: users %s, groups %s and %v; want %v, %v and %v", mark, f.UID, f.GID, f.Groups, uid, gid,
					groups)
			}
			if f.Caps == nil || (*f.Caps == 0) != (mark == "dropped") {
				t.Errorf("%s: capabilities %v; want none after the user was given up, some before", mark, f.Caps)
			}
			if !strings.Contains(f.Exe, "python") || f.Cwd == "" {
				t.Errorf("%s: program %q in %q; want those of the last execve", mark, f.Exe, f.Cwd)
			}
		}
		if n := e.count(t, name, "container = "+containerID[:12]+" and op = access"); n != 4 {
			t.Errorf("%d calls fit the container; want 4", n)
		}
		var sums struct {
			Rows []struct {
				Container string
				Calls     int
			}
		}
		text, _ := e.run(t, e.iotape, "stat", name, "--by", "container", "--json", "--filter",
			"path glob *dropped or path glob *before")
		if err := json.Unmarshal([]byte(text), &sums); err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, r := range sums.Rows {
			got[r.Container] = r.Calls
		}
		if want := map[string]int{"": 1, containerID[:12]: 1}; !maps.Equal(got, want) {
			t.Errorf("calls by container: %v; want %v", got, want)
		}
	})
}

// TestMovedByOthers: with eBPF, a move is seen whoever makes it.
func TestMovedByOthers(t *testing.T) {
	testenv.NeedBPF(t)
	group := containerCgroup(t)
	e := runEnv(t)
	// The mover is a child of the test's, which is not recorded.
	fifo := filepath.Join(e.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error, 1)
	go func() {
		pid, err := os.ReadFile(fifo)
		if err == nil {
			err = os.WriteFile(filepath.Join(group, "cgroup.procs"), pid, 0)
		}
		if err == nil {
			err = os.WriteFile(fifo, []byte("done\n"), 0)
		}
		moved <- err
	}()
	e.run(t, e.iotape, "record", "-o", "m.tape", "--backend", "ebpf", "--", "sh", "-c",
		`: > before; echo $$ > "$0"; read x < "$0"; : > after`, fifo)
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"before": 0, "after": 1} {
		n := e.count(t, "m.tape", "container = "+containerID[:12]+" and op = openat and path glob *"+name)
		if n != want {
			t.Errorf("%s: %d calls fit the container; want %d", name, n, want)
		}
	}
}

// TestSliceFacts: slices that begin later, and slices of some calls, say where their processes run.
func TestSliceFacts(t *testing.T) {
	testenv.NeedRoot(t)
	group := containerCgroup(t)
	e := runEnv(t)
	e.run(t, e.iotape, "record", "-o", "p.tape", "--", "sh", "-c",
		`echo $$ > "$0/cgroup.procs"; exec sh -c 'cat /dev/null; echo > last'`, group)
	var last uint64
	e.events(t, "p.tape", func(ev *event.Event) {
		if ev.Kind == event.Call && len(ev.Paths) > 0 && ev.Paths[0].Raw == "last" {
			last = ev.Seq
		}
	})
	for name, flags := range map[string][]string{
		"late": {"--from", strconv.FormatUint(last, 10)}, "some": {"--filter", "path glob *last"},
	} {
		e.run(t, append([]string{e.iotape, "slice", "p.tape", name + ".tape"}, flags...)...)
		filter := "container = " + containerID[:12] + " and path glob *last and op = openat"
		if n := e.count(t, name+".tape", filter); n != 1 {
			t.Errorf("%s: %d calls that open the file fit the container; want 1", name, n)
		}
	}
}

// TestPSFacts: ps says where a process runs, of one that ran before the recording, too.
func TestPSFacts(t *testing.T) {
	testenv.NeedRoot(t)
	group := containerCgroup(t)
	e := runEnv(t)
	cmd := exec.Command("sh", "-c", `echo $$ > "$0/cgroup.procs"; echo; read x; exec true`, group)
	cmd.Env = append(os.Environ(), "PAPER=not-for-others")
	in, out := pipes(t, cmd)
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil { // it is in the control group
		t.Fatal(err)
	}
	end, _ := e.attach(t, "-o", "p.tape", "--cgroup", group, "--until", "op = execve")
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	end()
	text, _ := e.run(t, e.iotape, "ps", "--long", "p.tape")
	if !strings.Contains(text, containerID[:12]) || !strings.Contains(text, "true (program 2)") {
		t.Errorf("ps --long prints\n%swant the container, and that it is the second program", text)
	}
	text, _ = e.run(t, e.iotape, "ps", "--json", "p.tape")
	var v struct {
		Processes []struct {
			Programs []struct{ Path string }
			Facts    facts.Summary
		}
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Processes) != 1 || len(v.Processes[0].Programs) != 2 ||
		v.Processes[0].Facts.Container != containerID ||
		!slices.Contains(v.Processes[0].Facts.Env, "PAPER") || len(v.Processes[0].Facts.Namespaces) == 0 {
		t.Errorf("ps --json prints\n%s", text)
	}
}

// TestUnits records units and containers by their names: those that run, and one that is started later.
func TestUnits(t *testing.T) {
	testenv.Short(t, "it waits for units")
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	group := containerCgroup(t)
	unit := "iotape-" + strconv.Itoa(os.Getpid())
	for _, tt := range []struct{ name, group, flag, value, want string }{
		{"unit", filepath.Join(filepath.Dir(group), unit+"-a.service"), "--unit", unit + "-a", "unit = " + unit + "-a"},
		{"container", group, "--container", containerID[:20], "container = " + containerID[:12]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.MkdirAll(tt.group, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(tt.group) })
			e := runEnv(t)
			cmd := exec.Command("sh", "-c", `echo $$ > "$0/cgroup.procs"; echo; read x; exec true`, tt.group)
			in, out := pipes(t, cmd)
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			end, said := e.attach(t, "-o", "u.tape", tt.flag, tt.value, "--until", "kind = exited")
			if !strings.Contains(said, "1 process with 1 thread and ") {
				t.Errorf("the recorder says %q; want what it took", said)
			}
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			end()
			if n := e.count(t, "u.tape", tt.want+" and op = execve and not failed"); n != 1 {
				t.Errorf("%d calls of execve fit %s; want 1", n, tt.want)
			}
		})
	}
	t.Run("wait", func(t *testing.T) {
		slice := filepath.Join(filepath.Dir(filepath.Dir(group)), "system.slice")
		if err := os.Mkdir(slice, 0o755); err == nil {
			t.Cleanup(func() { _ = os.Remove(slice) })
		}
		e := runEnv(t)
		if _, stderr, err := e.try(t, e.iotape, "record", "--unit", unit+"-w"); err == nil ||
			!strings.Contains(stderr, "no unit "+unit+"-w.service runs") || !strings.Contains(stderr, "--wait") {
			t.Errorf("without --wait: %v, %q; want an error that names it", err, stderr)
		}
		end, _ := e.attach(t, "-o", "w.tape", "--unit", unit+"-w", "--wait", "--until", "kind = exited")
		dir := filepath.Join(slice, unit+"-w.service")
		e.run(t, "sh", "-c", `echo $$ > "$0/cgroup.procs"; exec true`, dir)
		end()
		if n := e.count(t, "w.tape", "unit = "+unit+"-w and kind = exited"); n != 1 {
			t.Errorf("%d processes of the unit ended in its tape; want 1", n)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("the control group that was waited with is left: %v", err)
		}
	})
}

// count returns how many events of a tape fit a filter.
func (e *env) count(t *testing.T, tape, filter string) int {
	t.Helper()
	out, _ := e.run(t, e.iotape, "print", tape, "--json", "--filter", filter)
	return strings.Count(out, "\n")
}

// pipes starts a command whose input and output are the test's.
func pipes(t *testing.T, cmd *exec.Cmd) (in io.WriteCloser, out io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, out
}

// TestAttachThreads: a recording of a process with many threads has each of them.
func TestAttachThreads(t *testing.T) {
	testenv.Short(t, "it makes a thousand threads")
	testenv.NeedProgram(t, "python3")
	const program = `
import sys, threading
threading.stack_size(65536)
for i in range(999):
	threading.Thread(target=threading.Event().wait, daemon=True).start()
print("x", flush=True)
sys.stdin.read()`
	forBackends(t, func(t *testing.T, backend string) {
		e := runEnv(t)
		cmd := exec.Command("python3", "-c", program)
		in, out := pipes(t, cmd)
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		end, said := e.attach(t, "-o", "t.tape", "--backend", backend, "--pid", strconv.Itoa(cmd.Process.Pid),
			"--until", "kind = exited")
		if !strings.Contains(said, "1 process with 1,000 threads and ") {
			t.Errorf("the recorder says %q; want 1,000 threads", said)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		end()
		threads := map[uint32]bool{uint32(cmd.Process.Pid): true}
		e.events(t, "t.tape", func(ev *event.Event) {
			if ev.Kind == event.Forked && ev.Args[0]&event.ShareThread != 0 {
				threads[ev.Child] = true
			}
		})
		if len(threads) != 1000 {
			t.Errorf("the tape has %d threads; want 1000", len(threads))
		}
	})
}

// attach starts a recording of what runs already, and returns when it has begun, with what it says then.
func (e *env) attach(t *testing.T, args ...string) (end func(), said string) {
	t.Helper()
	cmd := exec.Command(e.iotape, append([]string{"record", "--duration", "1m"}, args...)...)
	cmd.Dir, cmd.Env = e.dir, e.environ()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		said += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "iotape: recording ") {
			return func() {
				t.Helper()
				for lines.Scan() {
					said += lines.Text() + "\n"
				}
				if err := cmd.Wait(); err != nil {
					t.Fatalf("the recording ended with %v\n%s", err, said)
				}
			}, said
		}
	}
	t.Fatalf("the recording did not begin: %v\n%s", cmd.Wait(), said)
	return nil, ""
}

// TestAttachChroot: the names of a process that was chrooted before its recording began are those of the host.
func TestAttachChroot(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "python3")
	const program = `
import os, sys
os.makedirs("jail/d"); os.chroot("jail"); os.chdir("/d")
print("x", flush=True)
sys.stdin.read()
os.close(os.open("/top", os.O_CREAT|os.O_WRONLY))
os.close(os.open("here", os.O_CREAT|os.O_WRONLY))
os.close(os.open("../../up", os.O_CREAT|os.O_WRONLY))`
	forBackends(t, func(t *testing.T, backend string) {
		e := runEnv(t)
		cmd := exec.Command("python3", "-I", "-S", "-c", program)
		cmd.Dir = e.dir
		in, out := pipes(t, cmd)
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		end, _ := e.attach(t, "-o", "t.tape", "--backend", backend, "--pid", strconv.Itoa(cmd.Process.Pid),
			"--until", "kind = exited")
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		end()
		want := map[string]string{"/top": "jail/top", "here": "jail/d/here", "../../up": "jail/up"}
		e.events(t, "t.tape", func(ev *event.Event) {
			for _, p := range ev.Paths {
				if name, ok := want[p.Raw]; ok && ev.Kind == event.Call {
					if want := filepath.Join(e.dir, name); p.Reached() != want {
						t.Errorf("%s is %s, want %s", p.Raw, p.Reached(), want)
					}
					delete(want, p.Raw)
				}
			}
		})
		if len(want) > 0 {
			t.Errorf("the tape has no calls with the names %v", want)
		}
	})
}
