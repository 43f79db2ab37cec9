package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"iotape/internal/testenv"
)

// TestPrintIsStrace holds what print writes against what strace writes of the same
// program: each field that strace shows has to be there and the same. What differs
// between two runs of strace itself, such as times, has to be of the same kind.
func TestPrintIsStrace(t *testing.T) {
	testenv.Short(t, "records many programs")
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "strace", "setarch", "cc", "unshare")
	iotape := testenv.Iotape(t)
	for _, p := range deterministic {
		t.Run(p.name, func(t *testing.T) {
			if p.needs != "" {
				testenv.NeedProgram(t, p.needs)
			}
			e := newEnv(t, iotape, "", nil)
			e.againstStrace(t, p.argv)
		})
	}
	for _, family := range families {
		t.Run(family, func(t *testing.T) {
			e := newEnv(t, iotape, "", nil)
			prog := filepath.Join(e.dir, family)
			src, err := filepath.Abs(filepath.Join("testdata", "calls", family+".c"))
			if err != nil {
				t.Fatal(err)
			}
			e.run(t, "cc", "-O1", "-o", prog, src)
			e.againstStrace(t, []string{"unshare", "-m", prog})
		})
	}
}

// known are the arguments of which strace shows what a recording has not, and why.
// -1 is what stands behind the result.
var known = map[string]map[int]string{
	"execve":       {2: "the environment is not recorded"},
	"execveat":     {3: "the environment is not recorded"},
	"rt_sigreturn": {0: "the mask stands on the stack, not in an argument"},
	"clone":        {2: "what parent_tid points to is the result", 4: "likewise"},
	"clone3":       {0: "what the kernel wrote into the thread's memory is the result"},
}

// shown is how long a string strace shows.
const shown = "4096"

func (e *env) againstStrace(t *testing.T, argv []string) {
	t.Helper()
	want, again := e.straceCalls(t, argv), e.straceCalls(t, argv)
	got := e.printedCalls(t, argv)
	if len(want) != len(again) || len(want) != len(got) {
		t.Fatalf("%d and %d threads in strace, %d in the tape", len(want), len(again), len(got))
	}
	failed := map[string]bool{}
	for thread := range want {
		compareThread(t, failed, want[thread], again[thread], got[thread])
	}
}

// compareThread compares the calls of one thread; of each operation, only the first
// difference is reported.
func compareThread(t *testing.T, failed map[string]bool, want, again, got []*straceCall) {
	t.Helper()
	for i, w := range want {
		if i >= len(again) || i >= len(got) || again[i].name != w.name {
			t.Fatalf("call %d is different in each run: %s", i, w.text)
		}
		a, g := again[i], got[i]
		if g.name != w.name && !strings.HasPrefix(w.name, "syscall_0x") {
			t.Fatalf("call %d\n  strace %.300s\n  print  %.300s", i, w.text, g.text)
		}
		if what := w.lacks(a, g); what != "" && !failed[w.name+what] {
			failed[w.name+what] = true
			t.Errorf("call %d: %s\n  strace %.600s\n  print  %.600s", i, what, w.text, g.text)
		}
	}
}

// lacks says what of strace's line is not in print's.
func (c *straceCall) lacks(again, got *straceCall) string {
	if strings.HasPrefix(c.name, "syscall_0x") {
		return "" // newer than this strace
	}
	n, a, g := node{kind: 'a', text: c.ret}, node{kind: 'a', text: again.ret}, node{kind: 'a', text: got.ret}
	if what := lacks(&n, &a, &g); what != "" {
		return "result " + what
	}
	for i := range c.args {
		if known[c.name][i] != "" {
			continue
		}
		if i >= len(got.args) {
			return "an argument is missing"
		}
		var other *node
		if i < len(again.args) {
			other = &again.args[i]
		}
		if what := lacks(&c.args[i], other, &got.args[i]); what != "" {
			return "argument " + string(rune('0'+i)) + " " + what
		}
	}
	if known[c.name][-1] != "" {
		return ""
	}
	n, a, g = node{kind: '[', parts: c.note}, node{kind: '[', parts: again.note}, node{kind: '[', parts: got.note}
	if what := lacks(&n, &a, &g); what != "" {
		return "note " + what
	}
	return ""
}

// straceCalls runs a program under strace and returns the calls of each thread, in
// the order in which threads appear.
func (e *env) straceCalls(t *testing.T, argv []string) [][]*straceCall {
	t.Helper()
	out := filepath.Join(e.dir, "strace")
	cmd := exec.CommandContext(t.Context(), "setarch", append([]string{"-R", "strace", "-f", "-v", "-qq", "-s", shown, "-xx", "-e", "signal=none", "-o", out}, argv...)...)
	cmd.Dir, cmd.Env = e.fresh(t), e.sameEnv()
	cmd.Stderr = &strings.Builder{} // a pipe, as when recording
	_ = cmd.Run()                   // its status is the program's
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return parseCalls(t, string(b))
}

// printedCalls records a program and returns what print writes of it.
func (e *env) printedCalls(t *testing.T, argv []string) [][]*straceCall {
	t.Helper()
	tape := filepath.Join(e.dir, "x.tape")
	cmd := exec.CommandContext(t.Context(), "setarch", append([]string{"-R", e.iotape, "record", "-o", tape, "--backend", "ptrace", "--every-call", "--no-index", "--"}, argv...)...)
	cmd.Dir, cmd.Env = e.fresh(t), e.sameEnv()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil && strings.Contains(stderr.String(), "hint:") {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	stdout, _ := e.run(t, e.iotape, "print", "--verbose", "--max-bytes", "-1", "--time", "none", tape)
	return parseCalls(t, stdout)
}

// parseCalls reads lines of strace or of print.
func parseCalls(t *testing.T, text string) [][]*straceCall {
	t.Helper()
	var threads [][]*straceCall
	place, half := map[string]int{}, map[string]string{}
	for line := range strings.Lines(text) {
		tid, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		rest = strings.TrimLeft(rest, " ")
		if strings.HasPrefix(rest, "---") || strings.HasPrefix(rest, "+++") || strings.HasPrefix(rest, "mmap_p") {
			continue
		}
		if first, ok := strings.CutSuffix(rest, " <unfinished ...>"); ok {
			half[tid] = first
			continue
		}
		if _, second, ok := strings.Cut(rest, " resumed>"); ok && strings.HasPrefix(rest, "<... ") {
			rest = half[tid] + second
		}
		call, err := (&notation{s: rest}).call()
		if err != nil {
			t.Fatalf("%v: %.300s", err, line)
		}
		i, ok := place[tid]
		if !ok {
			i = len(threads)
			place[tid] = i
			threads = append(threads, nil)
		}
		threads[i] = append(threads[i], call)
	}
	return threads
}
