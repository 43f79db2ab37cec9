// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// naming is a program that reaches files by other names than their own.
var naming = []struct {
	name, program string
	as            string // the filter's name of what it writes to or reads at last, below the directory
}{
	{"link", `os.mkdir("real"); os.symlink("real", "l"); use("l/f")`, "real/f"},
	{"link to a file", `os.symlink("f", "l"); use("l")`, "f"},
	{"above a link", `os.makedirs("a/b"); os.symlink("a/b", "l"); use("t"); use("l/../t")`, "a/t"},
	{"renamed working directory", `os.mkdir("d"); os.chdir("d"); os.rename("../d", "../e"); use("f")`, "e/f"},
	{"renamed open directory", `os.mkdir("d"); d = os.open("d", 0); os.rename("d", "e"); use("f", dir_fd=d)`, "e/f"},
	{"renamed file", `f = os.open("f", os.O_CREAT|os.O_RDWR); os.rename("f", "g"); os.write(f, b"x")`, "g"},
	{"renamed working directory of a child", `os.mkdir("d"); r, w = os.pipe(); r2, w2 = os.pipe()
if os.fork() == 0: os.chdir("d"); os.write(w2, b"x"); os.read(r, 1); use("f"); os._exit(0)
os.read(r2, 1); d = os.open("d", 0); os.rename("d", "e"); os.write(w, b"x"); os.wait(); use("g", dir_fd=d); os.getcwd()`, "e/f"},
	{"link to a link to ..", `os.makedirs("a/b"); os.symlink("..", "a/b/up"); os.symlink("up", "a/b/l"); use("a/b/l/f")`,
		"a/f"},
	{"made again while open", `f = os.open("f", os.O_CREAT|os.O_RDWR); os.unlink("f"); use("f"); os.write(f, b"old")
os.rename("f", "g"); os.write(f, b"older"); use("g")`, "g"},
	{"exchanged open directories", `os.mkdir("a"); os.mkdir("b"); a, b = os.open("a", 0), os.open("b", 0)
ctypes.CDLL(None).renameat2(-100, b"a", -100, b"b", 2); use("f", dir_fd=a); use("g", dir_fd=b)`, "b/f"},
	{"no text", `f = os.open(b"x\xff\ny", os.O_CREAT|os.O_RDWR); os.write(f, b"x")`, `x\xff\ny`},
	{"ends as that of a deleted file", `f = os.open("f (deleted)", os.O_CREAT|os.O_RDWR)
os.rename("f (deleted)", "d (deleted)"); os.write(f, b"x"); os.rename("d (deleted)", "g"); os.write(f, b"y")`, "g"},
	{"/proc/self/cwd", `os.mkdir("d"); os.chdir("d"); use("/proc/self/cwd/f")`, "d/f"},
	{"chroot", `os.mkdir("d"); os.chroot("d"); os.chdir("/"); os.symlink("/f", "l"); use("/l"); os.getcwd()`, "d/f"},
	{"pivot_root", `os.makedirs("jail/old"); os.mkdir("new"); c = ctypes.CDLL(None)
c.unshare(0x20000); c.mount(b"none", b"/", None, 0x44000, None); c.mount(b"jail", b"new", None, 0x1000, None)
os.chdir("new"); c.pivot_root(b".", b"old"); os.chdir("/"); use("/f"); os.getcwd()`, "jail/f"},
	{"clone with CLONE_NEWNS", `os.mkdir("d"); os.mkdir("at"); c = ctypes.CDLL(None)
if c.syscall({"x86_64": 56, "aarch64": 220}[os.uname().machine], 0x20000 | 17, 0, 0, 0, 0) == 0:
    c.mount(b"none", b"/", None, 0x44000, None); c.mount(b"d", b"at", None, 0x1000, None); use("at/f"); os._exit(0)
os.wait(); os.stat("at")`, "d/f"},
	{"above a bind mount", `os.makedirs("a/b"); os.makedirs("d/at"); c = ctypes.CDLL(None)
c.unshare(0x20000); c.mount(b"none", b"/", None, 0x44000, None); c.mount(b"a/b", b"d/at", None, 0x1000, None)
os.chdir("d/at"); os.rename("../../d", "../../e"); use("../f"); use("/proc/self/cwd/../f"); os.getcwd()`, "e/f"},
	{"unshare -m", `os.mkdir("d"); os.mkdir("at")
os.system("unshare -m sh -c 'mount --bind d at; echo x > at/f'"); use("at/f")`, "d/f"},
	{"bwrap", `os.mkdir("d"); os.mkdir("at"); os.stat("at"); at = os.getcwd() + "/at"
os.system("bwrap --dev-bind / / --bind d " + at + " sh -c 'cd at && pwd && echo x > ../at/f'")`, "d/f"},
	{"/proc/self/cwd of a thread that has its own", `import threading; os.mkdir("a"); os.mkdir("b"); os.chdir("b")
def own(): ctypes.CDLL(None).unshare(0x200); os.chdir("../a"); use("own"); use("/proc/thread-self/cwd/g"); use("/proc/self/cwd/f")
th = threading.Thread(target=own); th.start(); th.join()`, "b/f"},
	{"/proc/self/fd of a thread that has its own", `import threading; own, ready, end = [threading.Lock() for _ in range(3)]
own.acquire(); ready.acquire(); os.mkdir("a"); os.mkdir("b")
def run():
    ctypes.CDLL(None).unshare(0x400); os.dup2(os.open("a", 0), 60); ready.release(); own.acquire()
    use("/proc/thread-self/fd/60/g"); use("/proc/self/fd/60/f")
th = threading.Thread(target=run); th.start(); ready.acquire(); os.dup2(os.open("b", 0), 60); own.release(); th.join()`, "b/f"},
	{"a bind mount that moves", `os.mkdir("d"); os.mkdir("at"); os.mkdir("to"); c = ctypes.CDLL(None)
c.unshare(0x20000); c.mount(b"none", b"/", None, 0x44000, None); c.mount(b"d", b"at", None, 0x1000, None)
o = os.open("at", 0); c.mount(b"at", b"to", None, 0x2000, None); use("to/g"); use("h", dir_fd=o); use("at/f")`, "at/f"},
	{"what a bind mount that moved leads to", `os.mkdir("d"); os.mkdir("at"); os.mkdir("to"); c = ctypes.CDLL(None)
c.unshare(0x20000); c.mount(b"none", b"/", None, 0x44000, None); c.mount(b"d", b"at", None, 0x1000, None)
os.chdir("at"); c.mount(b".", b"../to", None, 0x2000, None); c.mount(b"d", b"at", None, 0x1000, None)
use("../own"); os.chdir("../to"); use("f"); os.getcwd()`, "d/f"},
	{"/proc/PID/root of another mount namespace", `os.mkdir("d"); os.mkdir("at"); r, w = os.pipe(); gone, end = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(end); c = ctypes.CDLL(None); c.unshare(0x20000); c.mount(b"none", b"/", None, 0x44000, None)
    c.mount(b"d", b"at", None, 0x1000, None); os.write(w, b"x"); os.read(gone, 1); os._exit(0)
os.read(r, 1); use("/proc/%d/root%s/at/f" % (pid, os.getcwd())); use("/proc/%d/cwd/at/g" % pid); use("at/own")
os.close(end); os.wait()`, "d/f"},
	{"setns", `os.makedirs("jail/old"); os.mkdir("new"); c = ctypes.CDLL(None); own = os.open("/proc/self/ns/mnt", 0)
r, w = os.pipe(); gone, end = os.pipe(); pid = os.fork()
if pid == 0:
    os.close(end); c.unshare(0x20000); c.mount(b"none", b"/", None, 0x44000, None)
    c.mount(b"jail", b"new", None, 0x1000, None); os.chdir("new"); c.pivot_root(b".", b"old")
    os.write(w, b"x"); os.read(gone, 1); os._exit(0)
os.read(r, 1); here = os.open(".", 0); c.setns(os.open("/proc/%d/ns/mnt" % pid, 0), 0x20000)
use("/f"); os.stat("f"); os.getcwd(); c.setns(own, 0); os.fchdir(here); os.close(end); os.wait(); os.stat("jail/f")`, "jail/f"},
}

// Files are found by their own names, by the name of a directory that they are below, and by
// a filter of the recording; their state afterwards is theirs, and a replay agrees with it. All
// programs of naming are in one recording.
func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records a program of many names with every back end")
	testenv.NeedProgram(t, "python3")
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "bwrap")
	forWays(t, func(t *testing.T, _ string, args []string) {
		t.Parallel()
		e := newEnv(t, testenv.Iotape(t), "", nil)
		named := func(i int) string { return filepath.Join(e.dir, "work", strconv.Itoa(i), naming[i].as) }
		e.recordNaming(t, args...)
		for i, c := range naming {
			dir := filepath.Dir(named(i))
			for _, filter := range []string{"path = " + quoted(named(i)), "path under " + quoted(dir)} {
				out := e.says(t, "print", "a.tape", "--filter", filter+" and op = write")
				if strings.Count(out, "write(") == 0 {
					t.Errorf("%s: no write fits %s", c.name, filter)
				}
			}
		}
		out, stderr, err := e.try(t, e.iotape, "replay", "a.tape", "--into", "again", "--verify")
		if err != nil {
			t.Errorf("replay: %v\n%s%s", err, out, stderr)
		}
		wanted := make([]string, len(naming))
		for i := range naming {
			wanted[i] = "path = " + quoted(named(i))
		}
		filter := "op = write and (" + strings.Join(wanted, " or ") + ")"
		e.recordNaming(t, append([]string{"--filter", filter}, args...)...)
		for i, c := range naming {
			out := e.says(t, "print", "a.tape", "--filter", wanted[i])
			if strings.Count(out, "write(") == 0 {
				t.Errorf("%s: a recording with the filter has no write:\n%s", c.name, out)
			}
		}
	}, "survive")
}

// recordNaming records all programs of naming, one after the other, each in a new directory of
// its own: work/INDEX.
func (e *env) recordNaming(t *testing.T, args ...string) {
	t.Helper()
	const head = `import os, ctypes
def use(name, **where):
    f = os.open(name, os.O_CREAT|os.O_RDWR, 0o644, **where); os.write(f, name.encode()); os.close(f)
`
	os.RemoveAll(filepath.Join(e.dir, "work"))
	var script strings.Builder
	for i, c := range naming {
		work := filepath.Join(e.dir, "work", strconv.Itoa(i))
		if err := os.MkdirAll(work, 0o755); err != nil {
			t.Fatal(err)
		}
		program := fmt.Sprintf("%sos.chdir(%s)\n%s\nos._exit(0)", head, quoted(work), c.program)
		file := filepath.Join(e.dir, strconv.Itoa(i)+".py")
		if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&script, "python3 -I -S %s || { echo %s failed >&2; exit 1; }\n", file, quoted(c.name))
	}
	if _, stderr, status := e.records(t, args, "sh", "-c", script.String()); status != 0 {
		out, _, _ := e.try(t, e.iotape, "print", "a.tape")
		t.Fatalf("status %d\n%s…%s", status, stderr, out[max(len(out)-3000, 0):])
	}
}

func quoted(s string) string { return `"` + s + `"` }

// What an unsealed recording of this machine shows are the names of its tape: links are followed that no call tells of.
func TestNamesOfStreams(t *testing.T) {
	forBackends(t, func(t *testing.T, backend string) {
		e := newEnv(t, testenv.Iotape(t), "", nil)
		dir, err := filepath.EvalSymlinks(e.dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		args := []string{"--backend", backend, "--keep-stream"}
		if _, stderr, status := e.records(t, args, "sh", "-c", "echo x > "+quoted(dir+"/link/f")); status != 0 {
			t.Fatalf("status %d\n%s", status, stderr)
		}
		want := "write(1<" + filepath.Join(dir, "real/f") + ">"
		for _, shown := range []string{
			e.says(t, "print", "a.tape"), e.says(t, "print", "a.stream"), e.says(t, "tail", "a.stream"),
		} {
			if !strings.Contains(shown, want) {
				t.Errorf("want a line with %s, got\n%s", want, shown)
			}
		}
	})
}
