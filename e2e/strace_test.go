// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
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

// known is what strace shows and a recording has not, and why.
var known = []struct {
	op, line string // operation, and what is in strace's line
	arg      int
	why      string
}{
	{"execve", "", 2, "the environment is not recorded"},
	{"execveat", "", 3, "the environment is not recorded"},
	{"clone", "", 2, "what parent_tid points to is the result"},
	{"clone3", "", 0, "what the kernel wrote into memory of the thread is the result"},
	{"ioctl", "fm_extent_count=0", 2, "strace shows memory that the call did not touch"},
	{"ioctl", "FIDEDUPERANGE", 2, "of a failed call only the head is recorded"},
	{"sendmsg", "= -1 ", 1, "content that a failed call did not move is not recorded"},
	{"recvmsg", "= -1 ", 1, "what a failed call did not write is not recorded"},
	{"getgroups", "(0, [", 1, "strace shows memory that the call did not touch"},
	{"pidfd_getfd", "", result, "depends on whether the other process still lives"},
	{"kcmp", "", result, "the order of two addresses in the kernel"},
	{"time", "", note, "it goes on"},
	{"timerfd_gettime", "", 1, "time goes on"},
	{"timer_gettime", "", 1, "time goes on"},
	{"getcpu", "", 0, "depends on where it ran"},
	{"restart_syscall", "", 0, "strace says which call it saw before"},
	{"seccomp", "BPF_STMT", 2, "instructions are structures"},
	{"write", `"\x63\x61\x6c\x6c\x20`, result, "what testdata/calls report has process numbers"},
	{"write", `"\x63\x61\x6c\x6c\x20`, 1, "likewise"},
	{"write", `"\x63\x61\x6c\x6c\x20`, 2, "likewise"},
	{"lgetxattr", ", 0) = ", 2, "strace shows memory that the call did not touch"},
}

// The places of the result, and of what stands behind it, among the arguments.
const (
	result = -1
	note   = -2
)

func (c *straceCall) known(arg int) bool {
	for _, k := range known {
		if k.op == c.name && k.arg == arg && strings.Contains(c.text, k.line) {
			return true
		}
	}
	return false
}

// shown is how long a string strace shows.
const shown = "4096"

func (e *env) againstStrace(t *testing.T, argv []string) {
	t.Helper()
	want, again := e.straceCalls(t, argv), e.straceCalls(t, argv)
	got := e.printedCalls(t, argv)
	failed := map[string]bool{}
	for thread := range want {
		if again[thread] == nil {
			continue // it does not always live to make a call
		}
		if got[thread] == nil && len(want[thread]) == 1 && strings.HasPrefix(want[thread][0].ret, "?") {
			continue // killed in its first call, or before it
		}
		if got[thread] == nil {
			t.Errorf("thread %s has no calls; strace: %s", thread, want[thread][0].text)
			continue
		}
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
	if what := lacks(&n, &a, &g); what != "" && !c.known(result) {
		return "result " + what
	}
	for i := range c.args {
		if c.known(i) {
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
	for i := range c.note {
		if c.note[i].text == "left" { // and how much time is
			c.note = c.note[:i+1]
			break
		}
	}
	n, a, g = node{kind: '[', parts: c.note}, node{kind: '[', parts: again.note}, node{kind: '[', parts: got.note}
	if what := lacks(&n, &a, &g); what != "" && !c.known(note) {
		return "note " + what
	}
	return ""
}

// straceCalls runs a program under strace and returns the calls of each thread, by
// its place in the family tree.
func (e *env) straceCalls(t *testing.T, argv []string) map[string][]*straceCall {
	t.Helper()
	out := filepath.Join(e.dir, "strace")
	cmd := exec.CommandContext(t.Context(), "setarch",
		append([]string{"-R", "strace", "-f", "-v", "-qq", "-s", shown, "-xx", "-e", "signal=none", "-o", out},
			argv...)...)
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
func (e *env) printedCalls(t *testing.T, argv []string) map[string][]*straceCall {
	t.Helper()
	tape := filepath.Join(e.dir, "x.tape")
	cmd := exec.CommandContext(t.Context(), "setarch",
		append([]string{"-R", e.iotape, "record", "-o", tape, "--backend", "ptrace", "--every-call", "--no-index",
			"--"}, argv...)...)
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
func parseCalls(t *testing.T, text string) map[string][]*straceCall {
	t.Helper()
	byTID, half, first := map[string][]*straceCall{}, map[string]string{}, ""
	for line := range strings.Lines(text) {
		tid, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		rest = strings.TrimLeft(rest, " ")
		if strings.HasPrefix(rest, "---") || strings.HasPrefix(rest, "+++") || strings.HasPrefix(rest, "mmap_p") ||
			strings.HasPrefix(rest, "rt_sigreturn(") { // it comes when a signal does, and has no arguments
			continue
		}
		if first == "" {
			first = tid
		}
		if begin, ok := strings.CutSuffix(rest, " <unfinished ...>"); ok {
			half[tid] = begin
			continue
		}
		if _, end, ok := strings.Cut(rest, " resumed>"); ok && strings.HasPrefix(rest, "<... ") {
			rest = half[tid] + end
		}
		call, err := (&notation{s: rest}).call()
		if err != nil {
			t.Fatalf("%v: %.300s", err, line)
		}
		byTID[tid] = append(byTID[tid], call)
	}
	threads := map[string][]*straceCall{}
	var name func(tid, place string)
	name = func(tid, place string) {
		threads[place] = byTID[tid]
		children := 0
		for _, c := range byTID[tid] {
			switch c.name {
			case "clone", "clone3", "fork", "vfork":
				children++
				if byTID[c.ret] != nil {
					name(c.ret, fmt.Sprintf("%s/%d", place, children))
				}
			}
		}
	}
	name(first, "first")
	return threads
}
