// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// runEnv is a directory with a configuration and an environment of its own, so that iotape
// tracers finds no other run.
func runEnv(t *testing.T) *env {
	t.Helper()
	e := &env{iotape: testenv.Iotape(t), dir: t.TempDir()}
	runtime, err := os.MkdirTemp("", "iotape-run-") // short enough for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runtime) })
	e.vars = []string{"XDG_RUNTIME_DIR=" + runtime, "TMPDIR=" + e.dir}
	return e
}

func (e *env) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// churn reads, writes, makes and removes files in several processes and directories, until
// there is a file stop; with an argument it goes round so often.
const churn = `i=0
while [ ! -e stop ] && [ $i != "$1" ]; do
	i=$((i+1))
	echo $i > f$((i%5)).txt
	cat f$((i%5)).txt gone.txt > c.log 2>/dev/null
	mkdir d && rmdir d
	cp f$((i%5)).txt g.o
	dd if=g.o of=h.o bs=1 count=2 seek=$((i%7)) conv=notrunc,fsync 2>/dev/null
done
exit 7
`

// someFilters are what tracers are asked for, with as many as one run can share.
var someFilters = []string{
	"op = write and ext = o",
	"failed and not errno = ENOENT or op = fsync",
	"class = namespace",
	"op in {read, pread64} and count <= 4KiB and latency > 1us",
	"path glob *.txt and class = data",
	"comm = dd",
}

func tracerTables(filters []string) string {
	var b strings.Builder
	for i, f := range filters {
		fmt.Fprintf(&b, "[[tracer]]\nname = \"t%d\"\nfilter = '%s'\n[tracer.output]\nindex = false\n", i, f)
	}
	return b.String()
}

// linesOf returns what print says of a tape, with times, line by line.
func (e *env) linesOf(t *testing.T, tape string, args ...string) []string {
	t.Helper()
	out, _ := e.run(t, append(append([]string{e.iotape, "print", "--time", "unix"}, args...), tape)...)
	return strings.Split(strings.TrimSpace(out), "\n")
}

// sameAsSlice slices a tape of everything by the filter that another tape was made with, and
// compares the two.
func (e *env) sameAsSlice(t *testing.T, full, tape string) {
	t.Helper()
	tp, err := trace.Open(filepath.Join(e.dir, tape))
	if err != nil {
		t.Fatal(err)
	}
	filter := tp.Host(0).Filter
	tp.Close()
	slice := "slice-" + tape
	e.run(t, e.iotape, "slice", "--no-index", full, slice, "--filter", filter)
	want, got := e.linesOf(t, slice), e.linesOf(t, tape)
	if !slices.Equal(want, got) {
		i := 0
		for i < min(len(want), len(got)) && want[i] == got[i] {
			i++
		}
		t.Errorf("%s (%s): %d events, and %d in the slice of everything; from event %d on:\n%.600s\n---\n%.600s", tape,
			filter, len(got), len(want), i,
			strings.Join(got[i:], "\n"), strings.Join(want[i:], "\n"))
	}
	if len(got) < 3 {
		t.Errorf("%s: only %d events", tape, len(got))
	}
}

// TestRun records one workload with several tracers, each with a filter of its own, beside
// one that records everything: each tape is the slice of that.
func TestRun(t *testing.T) {
	t.Parallel()
	for _, backend := range inTurn(t, append([]string{"ebpf"}, backendsWithoutRights()...)) {
		t.Run(backend, func(t *testing.T) {
			if backend == "ebpf" {
				testenv.NeedRoot(t)
				testenv.NeedBPF(t)
			}
			e := runEnv(t)
			e.write(t, "churn.sh", churn)
			e.write(t, "a.toml", "[input]\ncommand = ['sh', 'churn.sh', '12']\n[capture]\nbackend = '"+backend+
				"'\n[[tracer]]\nname = 'full'\n"+tracerTables(someFilters))
			_, stderr, err := e.try(t, e.iotape, "run", "a.toml")
			if exitStatus(err) != 7 {
				t.Fatalf("%v, the command's status is 7\n%s", err, stderr)
			}
			for i := range someFilters {
				e.sameAsSlice(t, "full.tape", fmt.Sprintf("t%d.tape", i))
			}
		})
	}
}

// TestRunScreened does the same without the one that records everything: what no filter
// wants is not recorded. The slice is of a recording of another run of the workload.
func TestRunScreened(t *testing.T) {
	testenv.Short(t, "it records a program several times")
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	e := runEnv(t)
	e.write(t, "churn.sh", churn)
	e.try(t, e.iotape, "record", "--no-index", "-o", "full.tape", "--", "sh", "churn.sh", "6")
	full, err := trace.Open(filepath.Join(e.dir, "full.tape"))
	if err != nil {
		t.Fatal(err)
	}
	all := int(full.Manifest().Counts.Events)
	full.Close()
	filters := []string{"op = write and ext = o", "op = fsync or op = mkdir"}
	for _, control := range []bool{true, false} {
		e.write(t, "a.toml", fmt.Sprintf("[input]\ncommand = ['sh', 'churn.sh', '6']\n[control]\nenabled = %v\n",
			control)+tracerTables(filters))
		_, stderr, _ := e.try(t, e.iotape, "run", "a.toml")
		recorded := regexp.MustCompile(`with them of ([0-9,]+) that were recorded`).FindStringSubmatch(stderr)
		if recorded == nil {
			t.Fatal(stderr)
		}
		if n, err := strconv.Atoi(strings.ReplaceAll(recorded[1], ",", "")); err != nil || n > all*9/10 {
			t.Errorf("control %v: %d of %d events were recorded: nothing was left out", control, n, all)
		}
		for i, f := range filters {
			tape, slice := fmt.Sprintf("t%d.tape", i), fmt.Sprintf("slice%d-%v.tape", i, control)
			e.run(t, e.iotape, "slice", "--no-index", "full.tape", slice, "--filter", f)
			if out, _, err := e.try(t, e.iotape, "diff", slice, tape); err != nil {
				t.Errorf("control %v: %s is not as the slice:\n%.2000s", control, tape, out)
			}
			if err := os.RemoveAll(filepath.Join(e.dir, tape)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRunOpens changes a filter to what the kernel has left out until then, and back, for
// which the kernel leaves it out again.
func TestRunOpens(t *testing.T) {
	testenv.Short(t, "it records several times")
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	e := runEnv(t)
	e.write(t, "churn.sh", churn)
	e.write(t, "a.toml", "[input]\ncommand = ['sh', 'churn.sh']\n[capture]\nmmap = 'off'\n"+
		tracerTables([]string{"op = fsync"}))
	r := e.startRun(t, "a.toml")
	waitFor(t, "the run", func() bool { return len(r.tracers(t)) == 1 })
	const times = 2
	for range times {
		r.awaitBytes(t, "t0", r.tracers(t)["t0"].Bytes+64<<10)
		e.run(t, r.ask("set", "t0", "--filter", "op in {write, read} and ext = o")...)
		r.awaitBytes(t, "t0", r.tracers(t)["t0"].Bytes+64<<10)
		e.run(t, r.ask("set", "t0", "--filter", "op = fsync")...)
	}
	e.write(t, "stop", "")
	if status := r.wait(t); status != 7 {
		t.Fatalf("status %d\n%s", status, &r.stderr)
	}
	// dd reads as often as it writes.
	wrote, read := 0, 0
	for _, line := range e.linesOf(t, "t0.tape") {
		m := regexp.MustCompile(` (read|write)\(\d+<.*/[gh].o>, .*\) = ([0-9]+)`).FindStringSubmatch(line)
		if m != nil && m[2] != "0" {
			if m[1] == "read" {
				read++
			} else {
				wrote++
			}
		}
	}
	if read < 6 || wrote-read > times || read-wrote > times {
		t.Errorf("%d reads and %d writes of dd", read, wrote)
	}
}

// runningTest is an iotape run in the background.
type runningTest struct {
	*env
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func (e *env) startRun(t *testing.T, args ...string) *runningTest {
	t.Helper()
	r := &runningTest{env: e, cmd: exec.Command(e.iotape, append([]string{"run"}, args...)...)}
	r.start(t)
	return r
}

func (r *runningTest) start(t *testing.T) {
	t.Helper()
	r.cmd.Dir, r.cmd.Stderr, r.cmd.Env = r.dir, &r.stderr, r.environ()
	r.cmd.WaitDelay = 5 * time.Second // what it records has its standard error, and may outlive it
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(r.dir, "stop"), nil, 0o600) // ends churn.sh
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait() // an error if the test has waited already
		if t.Failed() {
			t.Logf("iotape run said:\n%s", &r.stderr)
		}
	})
}

// inBackground runs churn.sh until the test ends.
func (e *env) inBackground(t *testing.T) *exec.Cmd {
	t.Helper()
	sh := exec.Command("sh", "churn.sh")
	sh.Dir = e.dir
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // not killed: what it runs would go on writing here
		e.write(t, "stop", "")
		_ = sh.Wait()
	})
	return sh
}

// wait waits for the end, and returns the status.
func (r *runningTest) wait(t *testing.T) int {
	t.Helper()
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return r.cmd.ProcessState.ExitCode()
}

// tracerInfo is what iotape tracers list --json says of a tracer.
type tracerInfo struct {
	Name, State, Filter, Output string
	Bytes, Lost                 uint64
	Recordings                  int
}

// ask is iotape tracers of this run: others may be running on the machine.
func (r *runningTest) ask(verb string, args ...string) []string {
	return append([]string{r.iotape, "tracers", verb, "--run", strconv.Itoa(r.cmd.Process.Pid)}, args...)
}

func (r *runningTest) tracers(t *testing.T) map[string]tracerInfo {
	t.Helper()
	var runs []struct{ Tracers []tracerInfo }
	out, _ := r.run(t, r.ask("list", "--json")...)
	if err := json.Unmarshal([]byte(out), &runs); err != nil {
		t.Fatal(err)
	}
	all := map[string]tracerInfo{}
	for _, r := range runs {
		for _, x := range r.Tracers {
			all[x.Name] = x
		}
	}
	return all
}

// awaitBytes waits until a tracer has more than some bytes.
func (r *runningTest) awaitBytes(t *testing.T, name string, more uint64) {
	t.Helper()
	waitFor(t, name+" has records", func() bool { return r.tracers(t)[name].Bytes > more })
}

// TestRunChanges changes tracers while they run: nothing is lost.
func TestRunChanges(t *testing.T) {
	testenv.Short(t, "it records for a while")
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	e := runEnv(t)
	e.write(t, "churn.sh", churn)
	e.write(t, "a.toml", `
[input]
command = ["sh", "churn.sh"]
[control]
name = "changes"
[[tracer]]
name = "full"
[[tracer]]
name = "w"
filter = 'op = write and ext = o'
[[tracer]]
name = "late"
start = false
filter = 'op = mkdir or path glob *.txt'
`)
	r := e.startRun(t, "a.toml")
	waitFor(t, "the run", func() bool { return len(r.tracers(t)) == 3 })
	r.awaitBytes(t, "w", 1<<20)
	set := func(args ...string) { e.run(t, r.ask("set", args...)...) }
	for range 3 {
		set("w", "--filter", "op = read and ext = txt")
		set("w", "--filter", "")
		set("w", "--filter", "op = rmdir or op = write and latency > 2us")
		r.awaitBytes(t, "full", r.tracers(t)["full"].Bytes+256<<10)
	}
	e.run(t, r.ask("start", "late")...)
	r.awaitBytes(t, "late", 64<<10)
	if out, _ := e.run(t, r.ask("stop", "late")...); !strings.Contains(out, "events fit the filter") {
		t.Error(out)
	}
	e.run(t, e.iotape, "check", "late.tape") // already there
	e.run(t, r.ask("start", "late")...)
	r.awaitBytes(t, "late", 64<<10)
	set("late", "--tape", "other.tape", "--content", "none")
	e.run(t, e.iotape, "check", "late-2.tape")
	r.awaitBytes(t, "late", 64<<10)
	e.write(t, "more.toml", "[[tracer]]\nname = 'more'\nfilter = 'op = openat'\n")
	e.run(t, r.ask("add", "more.toml")...)
	r.awaitBytes(t, "more", 64<<10)
	if x := r.tracers(t)["more"]; x.State != "running" || x.Filter != "op = openat" || x.Lost != 0 {
		t.Errorf("%+v", x)
	}
	for _, wrong := range [][]string{
		{"no tracer \"lat\"; did you mean late", "stop", "lat"},
		{"runs already", "start", "w"},
		{"did you mean read", "set", "w", "--filter", "op = raed"},
		{"is none of attributes, cpu, listings", "set", "w", "--omit", "cup"},
		{`there is a tracer "more" already`, "add", "more.toml"},
	} {
		_, stderr, err := e.try(t, r.ask(wrong[1], wrong[2:]...)...)
		if exitStatus(err) != 2 || !strings.Contains(stderr, wrong[0]) {
			t.Errorf("%v: %v: %s", wrong[1:], err, stderr)
		}
	}
	e.run(t, r.ask("remove", "more")...)
	if _, there := r.tracers(t)["more"]; there {
		t.Error("it is still there")
	}
	e.write(t, "stop", "")
	if status := r.wait(t); status != 7 {
		t.Errorf("status %d, that of the command is 7", status)
	}
	for _, line := range strings.Split(r.stderr.String(), "\n") {
		if strings.Contains(line, "LOST") || strings.Contains(line, "not whole") {
			t.Errorf("%s\n%s", line, r.stderr.String())
		}
	}
	e.sameAsSlice(t, "full.tape", "w.tape")
	e.fits(t, "late.tape", "late-2.tape", "other.tape", "more.tape")
	_, stderr, err := e.try(t, r.ask("show", "w")...)
	if exitStatus(err) != 2 || !strings.Contains(stderr, "no iotape run") {
		t.Errorf("%v: %s", err, stderr)
	}
}

// fits checks tapes of tracers that started late: what they picked from the time on that
// they are of is what the slice of everything has from then on.
func (e *env) fits(t *testing.T, tapes ...string) {
	t.Helper()
	for _, name := range tapes {
		e.run(t, e.iotape, "check", name)
		tp, err := trace.Open(filepath.Join(e.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		m, filter := tp.Manifest(), tp.Host(0).Filter
		at := func(ns int64) string { return time.Unix(0, tp.Host(0).Wall(ns)).UTC().Format(time.RFC3339Nano) }
		// A moment after the state that it began with, and before it was detached.
		from, to := at(m.FirstNS+50e6), at(m.LastNS-20e6)
		tp.Close()
		part := fmt.Sprintf("(%s) and time >= %q and time < %q", filter, from, to)
		want, got := e.linesOf(t, "full.tape", "--filter", part), e.linesOf(t, name, "--filter", part)
		if name == "other.tape" { // without content
			for _, l := range [][]string{want, got} {
				for i := range l {
					l[i], _, _ = strings.Cut(l[i], "(")
				}
			}
		}
		if !slices.Equal(want, got) {
			t.Errorf("%s: %d events, of everything %d:\n%.500s\n---\n%.500s", name, len(got), len(want),
				strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestRunTargets records a command, a process that runs already and a directory at the same
// time, with one configuration.
func TestRunTargets(t *testing.T) {
	testenv.Short(t, "it records for a while")
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	testenv.NeedFUSE(t)
	e := runEnv(t)
	e.write(t, "churn.sh", churn)
	for _, d := range []string{"lower", "mnt"} {
		if err := os.Mkdir(filepath.Join(e.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sh := e.inBackground(t)
	e.write(t, "a.toml", fmt.Sprintf(`
[[tracer]]
name = "command"
filter = 'class = data or op = mkdir'
[tracer.input]
command = ["sh", "-c", "until [ -e mnt/there ]; do sleep 0.05; done; echo of the command > mnt/new; cat mnt/new; exit 4"]
[[tracer]]
name = "process"
[tracer.input]
pid = [%d]
[[tracer]]
name = "directory"
filter = 'class = data'
[tracer.input]
mount = {lower = "lower", at = "mnt"}
[[tracer]]
name = "names"
filter = 'op = openat'
[tracer.input]
mount = {lower = "lower", at = "mnt"}
`, sh.Process.Pid))
	e.write(t, "lower/there", "")
	stdout, stderr, err := e.try(t, e.iotape, "run", "a.toml")
	if exitStatus(err) != 4 || stdout != "of the command\n" {
		t.Fatalf("%v, %q\n%s", err, stdout, stderr)
	}
	for tape, want := range map[string]string{
		"command.tape":   `write\(1<.*/mnt/new>, "of the command\\n"`,
		"process.tape":   `inherited [0-9]+<.*/churn.sh>|openat\(.*f[0-9].txt`,
		"directory.tape": `pwrite64\([0-9]+<.*/lower/new>, "of the command\\n"`,
		"names.tape":     `openat\(.*"new"`,
	} {
		e.run(t, e.iotape, "check", tape)
		if out := strings.Join(e.linesOf(t, tape), "\n"); !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s lacks %s:\n%.2000s", tape, want, out)
		}
	}
	if out := strings.Join(e.linesOf(t, "names.tape"), "\n"); strings.Contains(out, "pwrite64") {
		t.Errorf("names.tape has what only the other tracer of the mount wants:\n%.2000s", out)
	}
	if m, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(m), e.dir) {
		t.Errorf("still mounted (%v)", err)
	}
}

// TestMountTracers has several tracers at one mount, and changes one.
func TestMountTracers(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedFUSE(t)
	e := runEnv(t)
	for _, d := range []string{"lower", "mnt"} {
		if err := os.Mkdir(filepath.Join(e.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	e.write(t, "a.toml", "[[tracer]]\nname = 'full'\n[[tracer]]\nname = 'one'\nfilter = 'class = data'\n")
	r := &runningTest{env: e, cmd: exec.Command(e.iotape, "mount", "lower", "mnt", "--tracers", "a.toml")}
	r.start(t)
	sh := func(script string) { e.run(t, "sh", "-ec", script) }
	waitFor(t, "the mount", func() bool {
		b, _ := os.ReadFile("/proc/self/mountinfo")
		return strings.Contains(string(b), e.dir+"/mnt ")
	})
	sh("echo one > mnt/a; cat mnt/a; mkdir mnt/d")
	e.run(t, r.ask("set", "one", "--filter", "op = mkdirat or failed")...)
	sh("mkdir mnt/e; cat mnt/a; ! cat mnt/gone")
	e.run(t, r.ask("set", "one", "--filter", "class = data")...)
	sh("echo two >> mnt/a; mkdir mnt/f")
	e.unmount(t, "mnt")
	if status := r.wait(t); status != 0 {
		t.Fatalf("status %d\n%s", status, &r.stderr)
	}
	e.sameAsSlice(t, "full.tape", "one.tape")
	out := strings.Join(e.linesOf(t, "one.tape"), "\n")
	for _, want := range []string{`"one\n"`, `mkdirat(AT_FDCWD, "e"`, `"gone"`, `"two\n"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the tape lacks %s:\n%s", want, out)
		}
	}
	for _, none := range []string{`mkdirat(AT_FDCWD, "d"`, `mkdirat(AT_FDCWD, "f"`} {
		if strings.Contains(out, none) {
			t.Errorf("the tape has %s:\n%s", none, out)
		}
	}
}

// TestRunFailingOutput has tracers whose outputs fail: a listener that goes away, and a
// listener that was never there. The others lose nothing.
func TestRunFailingOutput(t *testing.T) {
	testenv.Short(t, "it records for a while")
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	e := runEnv(t)
	e.write(t, "churn.sh", churn)
	e.write(t, "none.toml", "[input]\ncommand = ['sh', 'churn.sh', '1']\n[[tracer]]\nname = "+
		"'good'\n[[tracer]]\nname = 'bad'\n[tracer.output]\nto = 'unix:"+e.dir+"/nobody?give-up=1s'\n")
	_, stderr, err := e.try(t, e.iotape, "run", "none.toml")
	if exitStatus(err) != 125 || !strings.Contains(stderr, "tracer bad: ") {
		t.Errorf("%v\n%s", err, stderr)
	}
	if left, _ := filepath.Glob(filepath.Join(e.dir, "good*")); len(left) != 0 {
		t.Errorf("nothing was recorded, and there is %v", left)
	}
	got := e.receive(t, "unix:"+e.dir+"/s", filepath.Join(e.dir, "streams"))
	e.write(t, "a.toml", `
[input]
command = ["sh", "churn.sh"]
[[tracer]]
name = "good"
[[tracer]]
name = "bad"
[tracer.output]
to = "unix:`+e.dir+`/s?spool=1M&give-up=1s"
`)
	r := e.startRun(t, "a.toml")
	waitFor(t, "the run", func() bool { return r.tracers(t)["bad"].Bytes > 1<<20 })
	got.kill()
	waitFor(t, "losses", func() bool { return r.tracers(t)["bad"].Lost > 0 })
	if x := r.tracers(t)["good"]; x.Lost != 0 || x.State != "running" {
		t.Errorf("%+v", x)
	}
	r.awaitBytes(t, "good", r.tracers(t)["good"].Bytes+256<<10)
	e.write(t, "stop", "")
	if status := r.wait(t); status != 7 {
		t.Errorf("status %d\n%s", status, &r.stderr)
	}
	if s := r.stderr.String(); !strings.Contains(s, "bad: the recording is not whole") ||
		!regexp.MustCompile(`good: .*, lost 0;`).MatchString(s) ||
		!regexp.MustCompile(`bad: LOST [1-9]`).MatchString(s) {
		t.Error(s)
	}
	e.run(t, e.iotape, "check", "good.tape")
}

// TestRunEnds ends runs without a command by a signal.
func TestRunEnds(t *testing.T) {
	testenv.Short(t, "it records for a while")
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	e := runEnv(t)
	e.write(t, "churn.sh", churn)
	sh := e.inBackground(t)
	e.write(t, "a.toml", fmt.Sprintf("[input]\npid = [%d]\n[[tracer]]\nname = 'full'\n%s", sh.Process.Pid,
		tracerTables(someFilters[:3])))
	r := e.startRun(t, "a.toml")
	waitFor(t, "the run", func() bool { return r.tracers(t)["full"].Bytes > 1<<20 })
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := r.wait(t); status != 0 {
		t.Fatalf("status %d\n%s", status, &r.stderr)
	}
	for i := range 3 {
		e.sameAsSlice(t, "full.tape", fmt.Sprintf("t%d.tape", i))
	}
	if err := sh.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the program: %v", err)
	}
}
