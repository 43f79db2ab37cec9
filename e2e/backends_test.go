// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// deterministic are programs that make the same calls each time. They run in a copy
// of the same directory.
var deterministic = []struct {
	name  string
	argv  []string
	needs string
}{
	{"cp", []string{"cp", "-a", "src", "dst"}, ""},
	{"ls", []string{"ls", "-lR", "."}, ""},
	{"cat", []string{"cat", "src/a", "src/b", "nothing"}, ""},
	{"sort", []string{"sort", "--parallel=1", "-o", "sorted", "src/a"}, ""},
	{"dd", []string{"dd", "if=src/b", "of=out", "bs=1000", "skip=1", "seek=3", "conv=fsync", "status=none"}, ""},
	{"mv", []string{"mv", "src/a", "renamed"}, ""},
	{"rm", []string{"rm", "-r", "src"}, ""},
	{"ln", []string{"ln", "-s", "src/a", "link"}, ""},
	{"truncate", []string{"truncate", "-s", "1M", "src/a"}, ""},
	{"touch", []string{"touch", "-d", "2001-02-03", "src/a", "new"}, ""},
	{"tar", []string{"tar", "-cf", "x.tar", "src"}, "tar"},
	{"sed", []string{"sed", "-n", "s/1/2/w out", "src/a"}, "sed"},
	{"find", []string{"find", ".", "-name", "*a*"}, "find"},
	{"gzip", []string{"gzip", "-k", "src/b"}, "gzip"},
	{"sh", []string{"sh", "-c", "for i in 1 2 3; do cat src/a >> all; done; mkdir d; cd d; /bin/true; read x < ../src/a; echo $x > y"}, ""},
	{"python3", []string{"/usr/bin/python3", "-I", "-S", "-B", "-c", "import os\nopen('p','w').write('x'*10000)\nos.rename('p','q')\nprint(len(open('src/b','rb').read()), os.listdir('src'))"}, "/usr/bin/python3"},
	{"sqlite3", []string{"sqlite3", "db", "create table t(x); insert into t values(1),(2); select * from t"}, "sqlite3"},
	{"git", []string{"git", "diff", "--no-index", "--stat", "src/a", "src/b"}, "git"},
}

// TestBackendsAgree records programs with all back ends and compares the tapes event
// by event, and the numbers of calls with strace's.
func TestBackendsAgree(t *testing.T) {
	testenv.Short(t, "records many programs")
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "strace", "setarch")
	iotape := testenv.Iotape(t)
	for _, p := range deterministic {
		t.Run(p.name, func(t *testing.T) {
			if p.needs != "" {
				testenv.NeedProgram(t, p.needs)
			}
			e := newEnv(t, iotape, "", nil)
			a, counts := e.recordSame(t, "ebpf", p.argv)
			for _, backend := range backendsWithoutRights() {
				b, _ := e.recordSame(t, backend, p.argv)
				if len(a) != len(b) {
					t.Errorf("eBPF has %d threads, %s %d", len(a), backend, len(b))
				}
				for thread, calls := range a {
					compareCalls(t, backend, thread, calls, b[thread])
				}
			}
			compareCounts(t, counts, e.strace(t, p.argv))
		})
	}
}

// fresh makes the directory in which a program runs; always the same one, on a new
// file system in memory: cp and others take names in the order of their inodes' numbers.
func (e *env) fresh(t *testing.T) string {
	t.Helper()
	work := filepath.Join(e.dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	syscall.Unmount(work, syscall.MNT_DETACH) // the one before; none at first
	if err := syscall.Mount("iotape-test", work, "tmpfs", 0, ""); err != nil {
		t.Fatalf("mounting a tmpfs on %s: %v", work, err)
	}
	t.Cleanup(func() { syscall.Unmount(work, syscall.MNT_DETACH) })
	if err := os.MkdirAll(filepath.Join(work, "src", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, "line %d\n", i*7919%3000)
	}
	for _, f := range [...]struct{ name, content string }{{"a", lines.String()},
		{"b", strings.Repeat("0123456789", 10007)}, {"sub/c", ""}} {
		if err := os.WriteFile(filepath.Join(work, "src", f.name), []byte(f.content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"src/a", "src/b", "src/sub/c", "src/sub", "src"} {
		if err := os.Chtimes(filepath.Join(work, name), time.Time{}, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return work
}

// sameEnv keeps from programs what may differ between two runs.
func (e *env) sameEnv() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + e.dir, "LC_ALL=C",
		"PYTHONHASHSEED=0", "GIT_CONFIG_NOSYSTEM=1"}
}

// recordSame records a program at fixed addresses and returns each thread's calls, as
// text, by the thread's place in the family tree, and how many calls there are of each.
func (e *env) recordSame(t *testing.T, backend string,
	argv []string) (calls map[string][]string, counts map[string]int) {
	t.Helper()
	tapeDir := filepath.Join(e.dir, backend+".tape")
	cmd := exec.CommandContext(t.Context(), "setarch",
		append([]string{"-R", e.iotape, "record", "-o", tapeDir, "--backend", backend, "--every-call",
			"--no-index", "--"}, argv...)...)
	cmd.Dir, cmd.Env = e.fresh(t), e.sameEnv()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil && strings.Contains(stderr.String(), "hint:") {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	tape, err := trace.Open(tapeDir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	calls, counts = map[string][]string{}, map[string]int{}
	names, children := map[uint32]string{}, map[uint32]int{}
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if names[ev.TID] == "" {
			names[ev.TID] = "first"
		}
		switch ev.Kind {
		case event.Forked:
			children[ev.TID]++
			names[ev.Child] = fmt.Sprintf("%s/%d", names[ev.TID], children[ev.TID])
		case event.Call:
			if !isCall(ev) {
				continue
			}
			counts[ev.Spec().Name]++
			if ev.Op == event.OpRtSigreturn {
				continue // when a child's end is signalled differs from run to run
			}
			calls[names[ev.TID]] = append(calls[names[ev.TID]], describe(ev))
		}
	}
	return calls, counts
}

// numbers are the inodes, ports and processes in the names of pipes and sockets.
var numbers = regexp.MustCompile(`[0-9]+`)

// kindOf returns the name of a file without what differs from run to run.
func kindOf(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return numbers.ReplaceAllString(name, "")
}

// describe says all of a call that is the same in each run.
func describe(ev *event.Event) string {
	var b strings.Builder
	spec := ev.Spec()
	fmt.Fprintf(&b, "%s(", spec.Name)
	for i := range spec.Args {
		switch a := spec.Argument(i, &ev.Args); a.Kind {
		case event.KindPID:
			b.WriteString("pid ")
		case event.KindHex, event.KindPath, event.KindText, event.KindBuf, event.KindVec,
			event.KindStruct, event.KindStrings:
			if ev.Args[i] == 0 {
				b.WriteString("0 ")
			} else {
				b.WriteString("* ")
			}
		default:
			fmt.Fprintf(&b, "%x ", ev.Args[i])
		}
	}
	b.WriteString(") = ")
	switch {
	case ev.Errno != 0 || ev.Flags&event.Interrupted != 0:
		fmt.Fprintf(&b, "%v %d", ev.Errno, ev.Flags&^event.Delays)
	case spec.Result == event.KindPID || spec.Result == event.KindHex || ev.Op == event.OpTimes ||
		ev.Op == event.OpTime:
		b.WriteString("*")
	default:
		fmt.Fprint(&b, ev.Ret)
	}
	for i := range ev.Paths {
		fmt.Fprintf(&b, " path%d %q %q", ev.Paths[i].Arg, ev.Paths[i].Raw, ev.Paths[i].Abs)
	}
	for i := range ev.Bufs {
		m := &ev.Bufs[i]
		fmt.Fprintf(&b, " mem%d %d %d %d %d %v", m.Arg, m.Kind, m.Dir, m.Len, m.Missing, m.Parts)
		if m.Kind == event.KindBuf && spec.Class == event.Data && ev.Comm != "sqlite3" || // which writes random numbers
			m.Kind == event.KindText || m.Kind == event.KindStrings {
			fmt.Fprintf(&b, " %q", m.Inline)
		}
	}
	for i := range ev.Files {
		f := &ev.Files[i]
		const creat = 0o100 // that the open made the file is known to eBPF alone
		fmt.Fprintf(&b, " fd%d %d %q %o %o %v", f.Arg, f.FD, kindOf(f.Path),
			f.Mode, f.Flags&^creat, f.Known)
		if f.Mode&0o170000 == 0o100000 {
			fmt.Fprintf(&b, " %d", f.Pos)
		}
	}
	return b.String()
}

// backendsWithoutRights are those that ordinary users have.
func backendsWithoutRights() []string {
	if runtime.GOARCH != "amd64" {
		return []string{"ptrace"}
	}
	return []string{"ptrace", "interpose"}
}

func compareCalls(t *testing.T, backend, thread string, a, b []string) {
	t.Helper()
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a) || i >= len(b):
			t.Errorf("thread %s: eBPF has %d calls, %s %d", thread, len(a), backend, len(b))
			return
		case a[i] != b[i]:
			t.Errorf("thread %s, call %d:\n  eBPF %s\n  %s %s", thread, i, a[i], backend, b[i])
			if strings.SplitN(a[i], "(", 2)[0] != strings.SplitN(b[i], "(", 2)[0] {
				return
			}
		}
	}
}

// strace returns how often a program makes each call, as strace counts.
func (e *env) strace(t *testing.T, argv []string) map[string]int {
	t.Helper()
	out := filepath.Join(e.dir, "strace")
	cmd := exec.CommandContext(t.Context(), "setarch",
		append([]string{"-R", "strace", "-f", "-qq", "-o", out}, argv...)...)
	cmd.Dir, cmd.Env = e.fresh(t), e.sameEnv()
	cmd.Stderr = &strings.Builder{} // a pipe, as when recording
	_ = cmd.Run()                   // its status is the program's
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(b)) {
		_, rest, _ := strings.Cut(line, " ")
		name, _, ok := strings.Cut(strings.TrimSpace(rest), "(")
		if ok && !strings.ContainsAny(name, " <+-") {
			counts[name]++
		}
	}
	return counts
}

func compareCounts(t *testing.T, got, want map[string]int) {
	t.Helper()
	if len(want) < 8 {
		t.Fatalf("strace tells of %d operations", len(want))
	}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if got[name] != want[name] {
			t.Errorf("%d calls of %s, strace counts %d", got[name], name, want[name])
		}
	}
}
