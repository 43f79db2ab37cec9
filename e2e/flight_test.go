// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// early builds testdata/early.c.
func early(t *testing.T) string {
	t.Helper()
	testenv.NeedProgram(t, "cc")
	out := filepath.Join(t.TempDir(), "early")
	if b, err := exec.Command("cc", "-O2", "-o", out, "testdata/early.c").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, b)
	}
	return out
}

// newFlight returns a directory for a flight recording, with its sockets, so that no
// other recorder is found there.
func newFlight(t *testing.T) *env {
	t.Helper()
	e := newEnv(t, testenv.Iotape(t), "", nil)
	e.vars = []string{"XDG_RUNTIME_DIR=" + e.dir}
	return e
}

// TestFlightCrash records a program that opens its files early, works for long and
// crashes. The tape has the last of it, and can be replayed to the same files.
func TestFlightCrash(t *testing.T) {
	testenv.Short(t, "it records for a while")
	t.Parallel()
	program := early(t)
	forBackends(t, func(t *testing.T, backend string) {
		e := newFlight(t)
		p := e.launch(t, "record", "--last", "20M", "-o", "a.tape", "--backend", backend, "--", program, "150", "crash")
		p.ends(t, 128+int(syscall.SIGABRT))
		contains(t, p.stderr.String(), "was ended by SIGABRT: the last ")
		// The dump that the crash asks for can be made before all has ended, on a busy machine. Another
		// follows then: the last has the files' state.
		list := regexp.MustCompile(`lost 0; dumps: (?:a-1\.tape )?(a-[12]\.tape)\n`)
		dumps := list.FindStringSubmatch(p.stderr.String())
		if dumps == nil {
			t.Fatalf("want one dump or two, and nothing lost:\n%s", p.stderr.String())
		}
		last := dumps[1]
		e.fromTheMiddle(t, last)
		out, _ := e.run(t, e.iotape, "stat", last)
		contains(t, out, "a part of a recording: ")
		out, _ = e.run(t, e.iotape, "print", last)
		contains(t, out, "+++ killed by SIGABRT")
		if strings.Contains(out, "step 1\\n") || !strings.Contains(out, "step 2399\\n") {
			t.Error("the tape does not have the end, and only that")
		}
		// All had ended: the state of the files is in the tape, and the same is left.
		stdout, stderr, err := e.try(t, e.iotape, "replay", last, "--into", "again", "--verify")
		if err != nil {
			t.Errorf("replay: %v\n%s%s", err, stdout, stderr)
		}
		for _, name := range []string{"d/data", "d/log"} {
			want, err1 := os.ReadFile(filepath.Join(e.dir, name))
			got, err2 := os.ReadFile(filepath.Join(e.dir, "again", e.dir, name))
			if err1 != nil || err2 != nil || string(want) != string(got) {
				t.Errorf("%s is not as the program left it: %v %v", name, err1, err2)
			}
		}
		for _, name := range []string{"a.tape", "a-3.tape", last + ".partial"} {
			if _, err := os.Lstat(filepath.Join(e.dir, name)); err == nil {
				t.Errorf("%s is there", name)
			}
		}
	})
}

// fromTheMiddle checks a tape of early.c whose beginning was not kept.
func (e *env) fromTheMiddle(t *testing.T, tape string) {
	t.Helper()
	e.run(t, e.iotape, "check", tape)
	e.perfect(t, tape)
	out, _ := e.run(t, e.iotape, "print", tape)
	for _, want := range []string{
		fmt.Sprintf("--- started in %q, umask 027 ---\n", e.dir+"/d"),
		"--- inherited 3<" + e.dir + "/d/log> ---\n",
		"write(3<" + e.dir + "/d/log>, \"step ",
		"read(5<" + e.dir + "/d/data>, ",
		"openat(6<" + e.dir + "/d>, \"f",
	} {
		contains(t, out, want)
	}
	if m := regexp.MustCompile(`openat\(6<[^"]*"(f\d+)".*\) = (\d+)<([^>]*)>`).FindStringSubmatch(out); m == nil ||
		m[3] != e.dir+"/d/"+m[1] {
		t.Errorf("a file opened by way of a directory that was open: %q", m)
	}
	// A read through one number begins where one through the other ended.
	out, _ = e.run(t, e.iotape, "print", "--json", tape)
	next := int64(-1)
	pairs := 0
	for line := range strings.Lines(out) {
		var ev struct {
			Op     string
			Ret    int64
			Offset int64
			Files  []struct {
				FD   int
				Open uint64
			}
		}
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatal(err)
		}
		switch {
		case ev.Op == "read" && ev.Files[0].FD == 4:
			next = ev.Offset + ev.Ret
		case ev.Op == "read" && ev.Files[0].FD == 5 && next >= 0:
			if pairs++; ev.Offset != next {
				t.Errorf("read at %d of a file that is at %d", ev.Offset, next)
			}
		}
	}
	if pairs == 0 {
		t.Error("no file was read under two numbers")
	}
}

// TestFlightDumps asks for dumps in all ways while a program runs.
func TestFlightDumps(t *testing.T) {
	testenv.Short(t, "it records for a while")
	t.Parallel()
	program := early(t)
	forBackends(t, func(t *testing.T, backend string) {
		e := newFlight(t)
		p := e.launch(t, "record", "--last", "1h,20M", "-o", "b.tape", "--backend", backend, "--dump-on",
			"errno=ENOTDIR",
			"--", program, "60", "wait")
		p.until(t, "ready")

		out, _ := e.run(t, e.iotape, "dump", "--list")
		contains(t, out, " b ")
		contains(t, out, "early 60 wait")
		if st, err := os.Stat(filepath.Join(e.dir, "iotape", strconv.Itoa(p.Process.Pid)+".sock")); err != nil ||
			st.Mode().Perm() != 0o600 {
			t.Errorf("socket: %v %v", st, err)
		}

		out, _ = e.run(t, e.iotape, "dump", "b")
		if out != e.dir+"/b-1.tape\n" {
			t.Errorf("dump printed %q", out)
		}
		p.Process.Signal(syscall.SIGUSR1)
		p.until(t, "b-2.tape")
		b, err := os.ReadFile(filepath.Join(e.dir, "ready"))
		pid, err2 := strconv.Atoi(string(b))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		_ = syscall.Kill(pid, syscall.SIGUSR2)
		p.until(t, "b-3.tape")
		out, _ = e.run(t, e.iotape, "dump", strconv.Itoa(p.Process.Pid))
		if out != e.dir+"/b-4.tape\n" {
			t.Errorf("dump printed %q", out)
		}
		if _, _, err := e.try(t, e.iotape, "dump", "another"); err == nil {
			t.Error("a flight recorder that does not run was dumped")
		}
		_ = syscall.Kill(pid, syscall.SIGUSR2)
		p.ends(t, 0)
		contains(t, p.stderr.String(), "lost 0; dumps: b-1.tape b-2.tape b-3.tape b-4.tape")
		contains(t, p.stderr.String(), "failed with ENOTDIR")
		for i := 1; i <= 4; i++ {
			tape := fmt.Sprintf("b-%d.tape", i)
			e.fromTheMiddle(t, tape)
			stdout, stderr, err := e.try(t, e.iotape, "replay", tape, "--into", fmt.Sprint("again", i), "--verify")
			if err != nil {
				t.Errorf("replay of %s: %v\n%s%s", tape, err, stdout, stderr)
			}
		}
		out, _ = e.run(t, e.iotape, "print", "b-3.tape")
		if !regexp.MustCompile(`log/not-a-directory", O_RDONLY.*= -1 ENOTDIR`).MatchString(out) {
			t.Error("the call that asked for a dump is not in it")
		}
		if out, _, err := e.try(t, e.iotape, "dump"); err == nil {
			t.Errorf("no flight recorder runs, and %s", out)
		}
	})
}

// TestFlightSlow makes a dump of a call that takes long.
func TestFlightSlow(t *testing.T) {
	t.Parallel()
	testenv.NeedProgram(t, "flock")
	forBackends(t, func(t *testing.T, backend string) {
		e := newFlight(t)
		p := e.launch(t, "record", "--last", "1h", "-o", "c.tape", "--backend", backend, "--dump-on",
			"op=flock,slow=200ms", "--dump-on", "exit!=0",
			"--", "sh", "-c", "flock l true; (flock l sh -c 'echo > locked; sleep 0.6') & while [ ! -e locked ]; "+
				"do :; done; flock l true; sleep 0.3; exit 3")
		p.ends(t, 3)
		contains(t, p.stderr.String(), "iotape: flock by thread ")
		contains(t, p.stderr.String(), "iotape: the command ended with status 3: the last ")
		contains(t, p.stderr.String(), "dumps: c-1.tape c-2.tape\n")
		e.perfect(t, "c-1.tape")
		out, _ := e.run(t, e.iotape, "print", "c-1.tape")
		contains(t, out, "flock(3<"+e.dir+"/l>, LOCK_EX) = 0 <0.")
	})
}

// TestFlightQuiet writes nothing when nothing happens, keeps no more than it was told
// to, and says so.
func TestFlightQuiet(t *testing.T) {
	testenv.Short(t, "it records for a while")
	t.Parallel()
	program := early(t)
	forBackends(t, func(t *testing.T, backend string) {
		e := newFlight(t)
		mib := 1000
		if testing.Short() {
			mib = 200
		}
		p := e.launch(t, "record", "--last", "32M", "-o", "d.tape", "--backend", backend, "--", program,
			strconv.Itoa(mib), "end")
		peak := peakKiB(p.Process.Pid, func() bool { return true })
		p.ends(t, 0)
		contains(t, p.stderr.String(), "nothing asked for a dump, so nothing is written")
		if left, err := filepath.Glob(filepath.Join(e.dir, "d.*")); err != nil || len(left) > 0 {
			t.Errorf("written: %v %v", left, err)
		}
		// Twice the calls' bytes went through: what was written and read.
		const limit = 32 + 64 // MiB; the rest is the program itself
		if mem := <-peak >> 10; mem == 0 || mem > limit {
			t.Errorf("%d MiB of memory", mem)
		} else {
			t.Logf("%d MiB of memory for 32 MiB of %d", mem, 2*mib)
		}
	})
}

// TestFlightKilled kills the recorder: its socket is no longer taken for one.
func TestFlightKilled(t *testing.T) {
	t.Parallel()
	e := newFlight(t)
	p := e.launch(t, "record", "--last", "16M", "-o", "e.tape", "--backend", "ptrace", "--", "sh", "-c",
		"echo > ready; exec sleep 60")
	p.until(t, "ready")
	p.Process.Kill()
	time.Sleep(50 * time.Millisecond)
	p.signal(syscall.SIGKILL)
	p.Wait()
	_, stderr, err := e.try(t, e.iotape, "dump")
	if err == nil {
		t.Error("dumped")
	}
	contains(t, stderr, "no flight recorder of this user runs")
	if left, _ := filepath.Glob(filepath.Join(e.dir, "iotape", "*.sock")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
