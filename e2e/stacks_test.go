// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// stackWays are the ways to record stacks.
var stackWays = []string{"ebpf", "interpose", "ptrace"}

// builds are how the program of the stacks is compiled: by compiler, flags.
var builds = []struct {
	name string
	args []string
}{
	{"without frame pointers", []string{"gcc", "-O2", "-fomit-frame-pointer"}},
	{"with frame pointers only", []string{"gcc", "-O1", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables"}},
	{"no PIE", []string{"gcc", "-O2", "-no-pie"}},
	{"static", []string{"gcc", "-O2", "-static"}},
	{"static PIE", []string{"gcc", "-O2", "-static-pie"}},
	{"lines", []string{"gcc", "-O2", "-g"}},
}

// functionsOf returns the functions of the first call of an operation whose stack has the program's main, or else the
// function at its thread's beginning, or a handler: those of a module, or all if that is "".
func functionsOf(stacks map[event.Op][]*event.Stack, op event.Op, module string) []string {
	for _, s := range stacks[op] {
		var list []string
		for i := range s.Frames {
			if f := &s.Frames[i]; module == "" || f.Module == module {
				list = append(list, f.Function)
			}
		}
		for _, name := range []string{"main", "thread", "handler"} {
			if i := slices.Index(list, name); i >= 0 {
				return list[:i+1]
			}
		}
	}
	return nil
}

// stackEnv is the directory of a test.
type stackEnv struct{ dir string }

// run runs iotape and returns its output.
func (e *stackEnv) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(testenv.Iotape(t), args...)
	cmd.Dir = e.dir
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("iotape %q: %v\n%s", args, err, &said)
	}
	return string(out)
}

// stacks returns the stacks of a tape by operation.
func (e *stackEnv) stacks(t *testing.T, tape string) map[event.Op][]*event.Stack {
	t.Helper()
	stacks := map[event.Op][]*event.Stack{}
	tp, err := trace.Open(filepath.Join(e.dir, tape))
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	for ev, err := range tp.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Stack != nil {
			stacks[ev.Op] = append(stacks[ev.Op], ev.Stack)
		}
	}
	return stacks
}

// TestStacks compares the stacks of calls that a program makes from known places, however it was compiled.
func TestStacks(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records many programs")
	for _, way := range stackWays {
		for _, b := range builds {
			t.Run(way+" "+b.name, func(t *testing.T) { testStacks(t, way, b.args) })
		}
	}
}

// compileStacks makes the program.
func compileStacks(t *testing.T, program string, compiler ...string) {
	t.Helper()
	args := append(slices.Clone(compiler[1:]), "-pthread", "-o", program, "testdata/stacks.c")
	if b, err := exec.Command(compiler[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
}

func testStacks(t *testing.T, way string, compile []string) {
	if way == "ebpf" {
		testenv.NeedBPF(t)
	}
	testenv.NeedProgram(t, compile[0])
	e := stackEnv{t.TempDir()}
	program := filepath.Join(e.dir, "program")
	compileStacks(t, program, compile...)
	e.run(t, "record", "--backend", way, "--stacks", "-o", "s.tape", "--", program, filepath.Join(e.dir, "out"))
	stacks := e.stacks(t, "s.tape")
	behind := []string{"raiser", "main"}
	if way == "ebpf" {
		behind = nil // they are on another stack, which is not copied
		if s := stacks[event.OpFtruncate]; len(s) != 1 || s[0].End != event.StackMemory {
			t.Errorf("the stacks of the handler's call are %+v, want one that says that it goes on elsewhere", s)
		}
	}
	for _, c := range []struct {
		op   event.Op
		want []string
	}{
		{event.OpFsync, []string{"inner", "middle", "outer", "main"}},
		{event.OpRead, []string{"reader", "main"}},
		{event.OpFdatasync, []string{"thread_work", "thread"}},
		{event.OpFtruncate, append([]string{"handler_work", "handler"}, behind...)},
		{event.OpFchmod, append(slices.Repeat([]string{"deep"}, 21), "main")},
	} {
		module := program
		got := functionsOf(stacks, c.op, module)
		if slices.Contains(compile, "-static") || slices.Contains(compile, "-static-pie") {
			got = slices.DeleteFunc(got, func(name string) bool { return !slices.Contains(c.want, name) }) // libc's
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("stack of %s, want - got +:\n%s\nall of it: %q", c.op, diff, functionsOf(stacks, c.op, ""))
		}
	}
	if read := functionsOf(stacks, event.OpRead, ""); !slices.Contains(read, "fread") {
		t.Errorf("the stack of the read is %q, want fread in it", read)
	}
	if slices.Contains(compile, "-g") {
		checkLines(t, stacks[event.OpFsync])
	}
	e.run(t, "check", "s.tape")
}

// checkLines compares the lines of a stack with the source.
func checkLines(t *testing.T, stacks []*event.Stack) {
	t.Helper()
	source, err := os.ReadFile("testdata/stacks.c")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	for _, f := range stacks[0].Frames {
		want := map[string]string{"inner": "fsync(", "middle": "inner()", "outer": "middle("}[f.Function]
		if want == "" {
			continue
		}
		near := f.Line > 1 && strings.Contains(strings.Join(lines[f.Line-2:min(f.Line+1, len(lines))], "\n"), want)
		if filepath.Base(f.File) != "stacks.c" || !near {
			t.Errorf("%s is at %s:%d, want the line of testdata/stacks.c that has %q", f.Function, f.File, f.Line, want)
		}
	}
}

// TestStackUnknown records a program whose C library does not say where its callers are: its stacks end there, say
// so, and have no frame that is not one.
func TestStackUnknown(t *testing.T) {
	t.Parallel()
	testenv.NeedProgram(t, "musl-gcc")
	e := stackEnv{t.TempDir()}
	program := filepath.Join(e.dir, "program")
	compileStacks(t, program, "musl-gcc", "-O2", "-static")
	for _, way := range stackWays {
		tape := way + ".tape"
		e.run(t, "record", "--backend", way, "--stacks=op = fsync", "-o", tape, "--", program,
			filepath.Join(e.dir, "out"))
		stacks := e.stacks(t, tape)[event.OpFsync]
		if len(stacks) != 1 {
			t.Fatalf("%s: %d stacks, want 1", way, len(stacks))
		}
		var got []string
		for _, f := range stacks[0].Frames {
			got = append(got, f.Function)
		}
		if stacks[0].End != event.StackBroken || slices.Contains(got, "outer") && !slices.Contains(got, "inner") {
			t.Errorf("%s: the stack is %q and ends with: %s; want no caller that is not known", way, got, stacks[0].End)
		}
	}
}

// TestStackLimit records a recursion that is deeper than stacks are: they end, and say so.
func TestStackLimit(t *testing.T) {
	t.Parallel()
	testenv.NeedProgram(t, "gcc")
	e := stackEnv{t.TempDir()}
	program := filepath.Join(e.dir, "program")
	compileStacks(t, program, "gcc", "-O1")
	for _, way := range stackWays {
		tape := way + ".tape"
		e.run(t, "record", "--backend", way, "--stacks=op = fchmod", "-o", tape, "--", program,
			filepath.Join(e.dir, "out"), strconv.Itoa(20000))
		stacks := e.stacks(t, tape)
		if len(stacks) != 1 || len(stacks[event.OpFchmod]) != 1 {
			t.Fatalf("%s: calls of %d kinds have stacks, want one fchmod", way, len(stacks))
		}
		s := stacks[event.OpFchmod][0]
		if s.End != event.StackLimit && s.End != event.StackMemory || s.Frames[100].Function != "deep" {
			t.Errorf("%s: the stack has %d frames and ends with: %s; want it cut", way, len(s.Frames), s.End)
		}
		if out := e.run(t, "print", "-k", tape, "--filter", "op = fchmod"); !strings.Contains(out, " > ... (") {
			t.Errorf("%s: print -k does not say that the stack is cut:\n%.300s", way, out)
		}
	}
}

// TestStacksOfStrace compares addresses and modules with those of strace -k.
func TestStacksOfStrace(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records under strace, too")
	testenv.NeedProgram(t, "gcc", "strace")
	if b, _ := exec.Command("strace", "-V").Output(); !strings.Contains(string(b), "stack-trace=") {
		testenv.Lacks(t, "needs strace with stacks")
	}
	e := stackEnv{t.TempDir()}
	program := filepath.Join(e.dir, "program")
	compileStacks(t, program, "gcc", "-O2")
	out := filepath.Join(e.dir, "out")
	b, err := exec.Command("strace", "-k", "-e", "trace=fsync", program, out).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	place := func(text string) (list []string) { // module and offset of each frame
		for _, line := range strings.Split(text, "\n") {
			if frame, ok := strings.CutPrefix(line, " > "); ok {
				module, _, _ := strings.Cut(frame, "(")
				_, offset, _ := strings.Cut(frame, "[")
				offset, _, _ = strings.Cut(offset, "]")
				list = append(list, module+" "+offset)
			}
		}
		return list
	}
	e.run(t, "record", "--backend", "ptrace", "--stacks=op = fsync", "-o", "k.tape", "--", program, out)
	strace, _, _ := strings.Cut(string(b), "---") // a signal has a stack there, too
	got := place(e.run(t, "print", "-k", "k.tape", "--filter", "op = fsync"))
	if diff := cmp.Diff(place(strace), got); diff != "" {
		t.Errorf("frames, want (strace) - got +:\n%s", diff)
	}
}

// TestStacksOfGo records a program of Go, with and without its symbols.
func TestStacksOfGo(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it builds programs of Go")
	testenv.NeedProgram(t, "go")
	e := stackEnv{t.TempDir()}
	source := filepath.Join(e.dir, "main.go")
	const text = `package main

import "os"

//go:noinline
func inner(f *os.File) { _ = f.Sync(); println("synced") }

//go:noinline
func outer(f *os.File) { inner(f); println("done") }

func main() {
	f, _ := os.Create(os.Args[1])
	done := make(chan bool)
	go func() { outer(f); done <- true }()
	<-done
}
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string]string{"symbols": "", "stripped": "-s -w"} {
		program := filepath.Join(e.dir, name)
		b, err := exec.Command("go", "build", "-ldflags", flags, "-o", program, source).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		for _, way := range stackWays {
			if way == "ebpf" {
				testenv.NeedBPF(t)
			}
			tape := name + "-" + way + ".tape"
			e.run(t, "record", "--backend", way, "--stacks=op = fsync", "-o", tape, "--", program,
				filepath.Join(e.dir, "out"))
			stacks := e.stacks(t, tape)[event.OpFsync]
			if len(stacks) != 1 {
				t.Fatalf("%s, %s: %d stacks, want 1", way, name, len(stacks))
			}
			var got []string
			for _, f := range stacks[0].Frames {
				got = append(got, f.Function)
			}
			want := []string{"os.(*File).Sync", "main.inner", "main.outer", "main.main.func1"}
			i := slices.Index(got, want[0])
			if i < 0 || len(got) < i+5 || !slices.Equal(got[i:i+4], want) || stacks[0].End != event.StackComplete {
				t.Errorf("%s, %s: the stack is %q and ends with: %s; want %q in it, complete", way, name, got,
					stacks[0].End, want)
			}
		}
	}
}

// TestStacksKept makes tapes of a tape: they have its stacks, anonymised ones without the names of files.
func TestStacksKept(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "records programs")
	testenv.NeedProgram(t, "gcc")
	e := stackEnv{t.TempDir()}
	program := filepath.Join(e.dir, "program")
	compileStacks(t, program, "gcc", "-O2")
	e.run(t, "record", "--backend", "ptrace", "--stacks", "-o", "a.tape", "--", program, filepath.Join(e.dir, "out"))
	e.run(t, "slice", "a.tape", "slice.tape", "--filter", "op = fsync")
	e.run(t, "merge", "-o", "merge.tape", "a.tape")
	e.run(t, "anonymise", "a.tape", "anon.tape", "--keys", "keys")
	want := []string{"inner", "middle", "outer", "main"}
	for _, tape := range []string{"slice.tape", "merge.tape"} {
		if got := functionsOf(e.stacks(t, tape), event.OpFsync, program); !slices.Equal(got, want) {
			t.Errorf("%s: the stack of the fsync is %q, want %q", tape, got, want)
		}
		e.run(t, "check", tape)
	}
	out := e.run(t, "print", "--json", "anon.tape", "--filter", "stack = inner")
	if !strings.Contains(out, `"function":"inner"`) || strings.Contains(out, "/program") ||
		strings.Contains(out, "build_id") {
		t.Errorf("the anonymised tape's stacks are not without names of files and build-ids:\n%.2000s", out)
	}
	folded := filepath.Join(e.dir, "a.folded")
	cmd := exec.Command(testenv.Iotape(t), "convert", "--weight", "calls", filepath.Join(e.dir, "a.tape"), folded)
	_ = cmd.Run() // 1: calls without a stack are left out
	b, err := os.ReadFile(folded)
	if err != nil || !strings.Contains(string(b), ";main;outer;middle;inner;fsync;fsync 1\n") {
		t.Errorf("%v; the folded stacks lack the fsync:\n%s", err, b)
	}
}

// TestStacksAtReturn records the stacks of calls of which only the result says whether they are wanted.
func TestStacksAtReturn(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records with each back end")
	testenv.NeedProgram(t, "gcc")
	e := stackEnv{t.TempDir()}
	program := filepath.Join(e.dir, "program")
	compileStacks(t, program, "gcc", "-O2")
	for _, way := range stackWays {
		if way == "ebpf" {
			testenv.NeedBPF(t)
		}
		tape := way + ".tape"
		e.run(t, "record", "--backend", way, "--stacks=op = fsync and latency > 1ns or op = ftruncate and failed",
			"-o", tape, "--", program, filepath.Join(e.dir, "out"))
		stacks := e.stacks(t, tape)
		want := []string{"inner", "middle", "outer", "main"}
		if got := functionsOf(stacks, event.OpFsync, program); len(stacks) != 1 || !slices.Equal(got, want) {
			t.Errorf("%s: calls of %d kinds have stacks, that of the fsync is %q; want that one, %q", way, len(stacks),
				got, want)
		}
	}
}

// TestStacksOfCxx records a program of C++: its functions have the names of the source, also in filters.
func TestStacksOfCxx(t *testing.T) {
	t.Parallel()
	testenv.NeedProgram(t, "g++")
	e := stackEnv{t.TempDir()}
	const source = `
#include <unistd.h>
namespace db {
template <class T> struct Log {
	__attribute__((noinline)) int commit(T fd) { volatile int r = fsync(fd); return r; }
};
}
int main() { db::Log<int> log; volatile int r = log.commit(1); return 0 * r; }
`
	name, program := filepath.Join(e.dir, "program.cc"), filepath.Join(e.dir, "program")
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command("g++", "-O1", "-o", program, name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	e.run(t, "record", "--backend", "ptrace", "--stacks=op = fsync", "-o", "c.tape", "--", program)
	want := []string{"db::Log<int>::commit", "main"}
	if got := functionsOf(e.stacks(t, "c.tape"), event.OpFsync, program); !slices.Equal(got, want) {
		t.Errorf("the stack of the fsync is %q; want %q", got, want)
	}
	out := e.run(t, "print", "c.tape", "--filter", `stack = "db::Log<int>::commit"`)
	if !strings.Contains(out, "fsync(") {
		t.Errorf("the filter with the function's name fits %q; want the fsync", out)
	}
}
