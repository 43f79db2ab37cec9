// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestRunCgroup has several tracers over a control group: they have what runs in it, what
// comes into it and nothing else, and end with it.
func TestRunCgroup(t *testing.T) {
	testenv.Short(t, "it records for a while")
	t.Parallel()
	testenv.NeedBPF(t)
	group := testenv.Cgroup(t)
	e := runEnv(t)
	e.write(t, "churn.sh", churn)
	e.write(t, "inside.sh", "echo $$ > "+group+"/cgroup.procs; exec \"$@\"\n")
	e.write(t, "a.toml", fmt.Sprintf("[input]\ncgroup = %q\n[capture]\non-overflow = 'block'\n[[tracer]]\nname = "+
		"'full'\n[tracer.output]\nindex = false\n", group)+tracerTables(someFilters[:3]))
	work := exec.Command("sh", "inside.sh", "sh", "churn.sh")
	work.Dir = e.dir
	if err := work.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.write(t, "stop", "") })
	waitFor(t, "the work", func() bool { _, err := os.Stat(filepath.Join(e.dir, "h.o")); return err == nil })
	r := e.startRun(t, "a.toml")
	waitFor(t, "the run", func() bool { return len(r.tracers(t)) == 4 })
	for _, name := range []string{"full", "t0", "t1", "t2"} {
		r.awaitBytes(t, name, 64<<10)
	}
	e.run(t, "sh", "-c", "echo of an outsider > outside")
	e.run(t, "sh", "inside.sh", "sh", "-c", "echo of one who came later > came")
	e.write(t, "stop", "")
	_ = work.Wait() // its status is 7
	waitFor(t, "the group to be empty", func() bool { return os.Remove(group) == nil })
	if status := r.wait(t); status != 0 || strings.Contains(r.stderr.String(), "LOST") {
		t.Fatalf("status %d\n%s", status, &r.stderr)
	}
	for i := range 3 {
		e.sameAsSlice(t, "full.tape", fmt.Sprintf("t%d.tape", i))
	}
	text := strings.Join(e.linesOf(t, "full.tape"), "\n")
	for want, is := range map[string]bool{`"of one who came later\n"`: true, `"of an outsider\n"`: false,
		"churn.sh": true} {
		if strings.Contains(text, want) != is {
			t.Errorf("the tape has %s: %v", want, !is)
		}
	}
}

// TestRunAll has tracers over the whole machine, each of which picks a program of it.
func TestRunAll(t *testing.T) {
	testenv.Short(t, "it records the whole machine")
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	e := runEnv(t)
	name := fmt.Sprintf("x%d", os.Getpid())
	if err := os.Symlink("/bin/dd", filepath.Join(e.dir, name)); err != nil {
		t.Fatal(err)
	}
	e.write(t, "in", "what is copied\n")
	e.write(t, "strange.sh", "until [ -e stop ]; do ./"+name+
		" if=in of=out status=none; echo >> rounds; sleep 0.02; done\n")
	own := func(more string) string { return "'comm = " + name + " and " + more + "'" }
	var tables strings.Builder
	for tracer, filter := range map[string]string{"writes": own("op = write"),
		"opens": own("op = openat and path glob **/in")} {
		fmt.Fprintf(&tables, "[[tracer]]\nname = %q\nfilter = %s\n[tracer.stream]\ncontent = "+
			"'head:64'\n[tracer.output]\nindex = false\n", tracer, filter)
	}
	e.write(t, "a.toml", "[input]\nall = true\n[capture]\nmmap = 'off'\n"+tables.String())
	rounds := func() int { b, _ := os.ReadFile(filepath.Join(e.dir, "rounds")); return len(b) }
	strange := exec.Command("sh", "strange.sh")
	strange.Dir = e.dir
	if err := strange.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.write(t, "stop", "")
		_ = strange.Wait()
	})
	waitFor(t, "the program", func() bool { return rounds() > 0 })
	r := e.startRun(t, "a.toml")
	waitFor(t, "the run", func() bool { return len(r.tracers(t)) == 2 })
	r.awaitBytes(t, "writes", 0)
	began := rounds()
	waitFor(t, "some rounds", func() bool { return rounds() > began+20 })
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if status := r.wait(t); status != 0 {
		t.Fatalf("status %d\n%s", status, &r.stderr)
	}
	for tape, line := range map[string]string{"writes.tape": `/out>, "what is copied\n", 15) = 15`,
		"opens.tape": `openat(AT_FDCWD, "in", O_RDONLY) = `} {
		e.run(t, e.iotape, "check", tape)
		text := strings.Join(e.linesOf(t, tape), "\n")
		if n := strings.Count(text, line); n < 3 { // the machine may be faster than the recorder
			t.Errorf("%s has %d lines with %s\n%s", tape, n, line, &r.stderr)
		}
		if out, _ := e.run(t, e.iotape, "print", tape, "--filter",
			"op in {write, read} and (comm != "+name+" or op = read)"); strings.TrimSpace(out) != "" {
			t.Errorf("%s has what it does not pick:\n%.1000s", tape, out)
		}
		if out, _ := e.run(t, e.iotape, "print", tape, "--filter",
			fmt.Sprintf("pid = %d", r.cmd.Process.Pid)); strings.TrimSpace(out) != "" {
			t.Errorf("%s has iotape itself:\n%.1000s", tape, out)
		}
	}
}
