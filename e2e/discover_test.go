// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// nodes builds testdata/nodes.c, as a static program: nothing is preloaded.
func nodes(t *testing.T) (e *env) {
	t.Helper()
	testenv.NeedProgram(t, "gcc")
	e = &env{dir: t.TempDir(), iotape: testenv.Iotape(t)}
	e.compile(t, "nodes")
	return e
}

// compile makes a program of testdata, in the directory of the test.
func (e *env) compile(t *testing.T, name string) {
	t.Helper()
	if b, err := exec.Command("gcc", "-O1", "-static", "-o", filepath.Join(e.dir, name),
		filepath.Join("testdata", name+".c")).CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, b)
	}
}

// discovers runs iotape discover on it, recorded as an ordinary user would.
func (e *env) discovers(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, got := e.tryDiscover(t, args...)
	if got != want {
		t.Fatalf("status %d, want %d\n%s%s", got, want, stdout, stderr)
	}
	return stdout, stderr
}

func (e *env) tryDiscover(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command(e.iotape, append([]string{"discover", "--backend", "ptrace"}, args...)...)
	cmd.Dir = e.dir
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

// writes returns the pwrite64 calls of a tape as the events that they are, by file and
// block, and what the annotations say they wait for.
func (e *env) writes(t *testing.T, name string) (calls map[string]uint64, notes *causal.Annotations) {
	t.Helper()
	tape, err := trace.Open(filepath.Join(e.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	if notes, err = causal.Read(tape); err != nil {
		t.Fatal(err)
	}
	calls = map[string]uint64{}
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Op == event.OpPwrite64 {
			calls[filepath.Base(ev.Files[0].Path)+":"+string(rune('0'+ev.Args[3]/4096))] = ev.Seq
		}
	}
	return calls, notes
}

// paths counts the pwrite64 calls of a tape by file.
func (e *env) paths(t *testing.T, name string) map[string]int {
	t.Helper()
	tape, err := trace.Open(filepath.Join(e.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	calls := map[string]int{}
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Op == event.OpPwrite64 {
			calls[ev.Files[0].Path]++
		}
	}
	return calls
}

// TestDiscoverTurns finds that two processes write in turn, which they know from memory
// that they share, and that a replay keeps to it.
func TestDiscoverTurns(t *testing.T) {
	testenv.Short(t, "it runs experiments")
	e := nodes(t)
	out, _ := e.discovers(t, 0, "-o", "a.tape", "--runs", "runs", "--json", "--", "./nodes", "turns")
	var v struct {
		Found int
		Nodes []struct {
			Name  string
			Calls int
			Holds int
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatal(err)
	}
	if v.Found < 7 || len(v.Nodes) != 2 || v.Nodes[1].Name != "1.1" || v.Nodes[1].Calls != 4 || v.Nodes[1].Holds != 4 {
		t.Errorf("%s", out)
	}
	calls, notes := e.writes(t, "a.tape")
	for i := range 4 {
		mine, other := "node.0:"+string(rune('0'+i)), "node.1:"+string(rune('0'+i))
		if got := notes.Before(calls[other]); len(got) != 1 || got[0] != calls[mine] {
			t.Errorf("%s waits for %v, not for %s, event %d", other, got, mine, calls[mine])
		}
		if i > 0 {
			before := calls["node.1:"+string(rune('0'+i-1))]
			if got := notes.Before(calls[mine]); len(got) != 1 || got[0] != before {
				t.Errorf("%s waits for %v, not for event %d", mine, got, before)
			}
		}
	}
	replay := exec.Command(e.iotape, "replay", "a.tape", "--into", "again", "--order", "causal", "--pace", "think",
		"--verify")
	replay.Dir = e.dir
	if b, err := replay.CombinedOutput(); err != nil {
		t.Errorf("replay: %v\n%s", err, b)
	}

	// What is kept is not run again, and a part of it is another study.
	out, said := e.discovers(t, 0, "-o", "a.tape", "--runs", "runs", "--suggest", "--", "./nodes", "turns")
	if !strings.Contains(out, "next: nothing: ") || strings.Contains(said, "held") {
		t.Errorf("%s%s", out, said)
	}
	e.discovers(t, 0, "-o", "b.tape", "--runs", "other", "--nodes", "1", "--period", "2", "--", "./nodes", "turns")
	out, _ = e.discovers(t, 0, "-o", "b.tape", "--runs", "other", "--suggest", "--", "./nodes", "turns")
	// How much of the run the annotations explain is a matter of its time; only if it is nearly all
	// (within 3 %, here rounded), nothing is suggested.
	share := regexp.MustCompile(`the annotations explain (\d+) %`).FindStringSubmatch(out)
	if share == nil {
		t.Fatalf("it is not said how much is explained: %s", out)
	}
	percent, err := strconv.Atoi(share[1])
	if err != nil {
		t.Fatal(err)
	}
	more := strings.Contains(out, "next: --nodes 1.1 --period 2, about ") ||
		strings.Contains(out, "next: --nodes 1, --period 2, about ")
	nothing := strings.Contains(out, "next: nothing: the annotations explain ") && percent >= 97 && percent <= 103
	if !more && !nothing {
		t.Errorf("%s", out)
	}

	out, _ = e.discovers(t, 0, "-o", "b.tape", "--runs", "other", "--nodes", "1,", "--json", "--", "./nodes", "turns")
	if !strings.Contains(out, `"held": "1"`) {
		t.Errorf("%s", out)
	}

	// Runs of one tape are not those of another.
	if err := os.Rename(filepath.Join(e.dir, "runs"), filepath.Join(e.dir, "mixed")); err != nil {
		t.Fatal(err)
	}
	_, said = e.discovers(t, 2, "-o", "b.tape", "--runs", "mixed", "--", "./nodes", "turns")
	if !strings.Contains(said, "iotape: mixed/quiet.json: this run belongs to another recorded one than b.tape\n") {
		t.Errorf("%s", said)
	}
	_, said = e.discovers(t, 2, "-o", "b.tape", "--runs", "other", "--", "./nodes", "barrier")
	if !strings.Contains(said, "iotape: b.tape is not a recording of ./nodes barrier\n") {
		t.Errorf("%s", said)
	}
}

// TestDiscoverBarrier recognises that all wait for all, having held one.
func TestDiscoverBarrier(t *testing.T) {
	e := nodes(t)
	out, _ := e.discovers(t, 0, "-o", "a.tape", "--nodes", "1.2", "--", "./nodes", "barrier")
	if !strings.Contains(out, "barriers recognised") || !strings.Contains(out, "the nodes stand at barriers") {
		t.Errorf("%s", out)
	}
	calls, notes := e.writes(t, "a.tape")
	for i := range 3 {
		for _, file := range []string{"node.0", "node.1"} {
			to, from := calls[file+":"+string(rune('1'+i))], calls["node.2:"+string(rune('0'+i))]
			if got := notes.Before(to); len(got) != 1 || got[0] != from {
				t.Errorf("block %d of %s waits for %v, not for event %d", i+1, file, got, from)
			}
		}
	}
}

// TestThreadExecutes has a thread that is not its process's first execute a program: the
// kernel gives it the number of that one. Its files stay where they are, and the node is
// the process's first.
func TestThreadExecutes(t *testing.T) {
	t.Parallel()
	e := nodes(t)
	for _, backend := range []string{"ptrace", "ebpf"} {
		t.Run(backend, func(t *testing.T) {
			if backend == "ebpf" {
				testenv.NeedRoot(t)
			}
			run := func(args ...string) {
				cmd := exec.Command(e.iotape, args...)
				cmd.Dir = e.dir
				if b, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", args, err, b)
				}
			}
			name := backend + ".tape"
			if err := os.RemoveAll(filepath.Join(e.dir, "dir")); err != nil {
				t.Fatal(err)
			}
			run("record", "--backend", backend, "-o", name, "--", "./nodes", "exec")
			calls := e.paths(t, name)
			for path, n := range map[string]int{"dir/first": 3, "dir/second": 1} {
				if calls[filepath.Join(e.dir, path)] != n {
					t.Errorf("%s: %d of %v", path, n, calls)
				}
			}
			run("annotate", name)
			run("replay", name, "--into", "again."+backend, "--order", "causal", "--verify")
		})
	}
	out, _ := e.discovers(t, 0, "-o", "a.tape", "--runs", "runs", "--prepare", "rm -rf dir", "--json", "--", "./nodes",
		"exec")
	var v struct {
		Nodes []struct {
			Name         string
			Calls, Holds int
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Nodes) != 2 || v.Nodes[0].Name != "1" || v.Nodes[0].Calls != 3 || v.Nodes[0].Holds != 3 ||
		v.Nodes[1].Name != "1/1" || v.Nodes[1].Calls != 1 {
		t.Errorf("%s", out)
	}
}

// TestDiscoverBad has applications that cannot be found out about, each of which is
// explained, in bounded time.
func TestDiscoverBad(t *testing.T) {
	testenv.Short(t, "waits for the limits of time that it tests")
	e := nodes(t)
	out, _ := e.discovers(t, 1, "-o", "chance.tape", "--", "./nodes", "chance")
	if !strings.Contains(out, "the runs differ: node 1, call 0: pwrite64(") ||
		!strings.Contains(out, "when nobody was held\n") {
		t.Errorf("%s", out)
	}
	// The second writes more often than the first, so a number alone may mean either.
	out, _ = e.discovers(t, 1, "-o", "forever.tape", "--nodes", "1,", "--hold", "300ms", "--", "./nodes", "forever")
	if !strings.Contains(out, "node 1 was held at call 0 for ") ||
		!strings.Contains(out, ", and 1.1 neither ended nor waited\n") {
		t.Errorf("%s", out)
	}
	out, _ = e.discovers(t, 1, "-o", "stop.tape", "--nodes", "1,", "--each", "4s", "--hold", "10s", "--patience",
		"500ms", "--", "./nodes", "stop")
	if !strings.Contains(out, "the run in which node 1 was held was ended: it was not at its end after 4s; node "+
		"1 had made ") || !strings.Contains(out, "node 1.1 had made 0 calls and was waiting for another in "+
		"pause, for ") {
		t.Errorf("%s", out)
	}
	e.nothingLeft(t)
	_, said := e.discovers(t, 2, "-o", "late.tape", "--each", "3s", "--", "./nodes", "late")
	if !strings.Contains(said, "iotape: the command was not at its end after 3s, and was ended: thread ") ||
		!strings.Contains(said, " (nodes) in wait4 for ") ||
		!strings.Contains(said, " (nodes) in pause, after pwrite64, for ") {
		t.Errorf("%s", said)
	}
	e.nothingLeft(t)
	_, said = e.discovers(t, 2, "-o", "late.tape", "--runs", "r", "--", "./nodes", "late")
	if !strings.Contains(said, "iotape: late.tape is of a run that failed, with signal 9: there is nothing to "+
		"compare others with\n") {
		t.Errorf("%s", said)
	}
	// The time is for all of it: what was found until then is stored.
	out, _ = e.discovers(t, 1, "-o", "budget.tape", "--budget", "20s", "--patience", "8s", "--hold", "1m", "--",
		"./nodes", "turns")
	if !strings.Contains(out, " was held was ended: it was not at its end after ") &&
		!strings.Contains(out, "no time was left to hold node ") {
		t.Errorf("%s", out)
	}
	e.nothingLeft(t)
	for _, c := range []struct {
		status int
		args   []string
		want   string
	}{
		{2, []string{"-o", "x.tape", "--period", "0", "--", "./nodes", "turns"}, "iotape: --period 0: it is to be 1, for each call, or more\n"},
		{2, []string{"-o", "x.tape", "--nodes", "0", "--", "./nodes", "turns"}, "iotape: --nodes 0: it is to be 1 or more\n"},
		{127, []string{"-o", "x.tape", "--", "mpirun-that-is-not-there", "-n", "2", "./nodes"}, "iotape: mpirun-that-is-not-there: command not found\n"},
		{2, []string{"-o", "true.tape", "--", "true"}, "iotape: no thread made an I/O call that counts: "},
		{2, []string{"-o", "false.tape", "--", "false"}, "iotape: the command, recorded with nobody held, failed with status 1\n"},
		{2, []string{"-o", "name.tape", "--nodes", "1.7", "--", "./nodes", "turns"}, `there is no node "1.7"; there are 1, 1.1` + "\n"},
	} {
		if _, said := e.discovers(t, c.status, c.args...); !strings.Contains(said, c.want) {
			t.Errorf("%v: %s", c.args, said)
		}
		e.nothingLeft(t)
	}
}
