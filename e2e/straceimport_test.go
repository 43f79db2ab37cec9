// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// TestStraceImported turns strace's output into a tape and holds what print writes of
// that against what strace wrote: programs, and every call of testdata/calls.
func TestStraceImported(t *testing.T) {
	testenv.Short(t, "traces many programs")
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "strace", "setarch", "cc", "unshare")
	iotape := testenv.Iotape(t)
	for _, p := range deterministic {
		t.Run(p.name, func(t *testing.T) {
			if p.needs != "" {
				testenv.NeedProgram(t, p.needs)
			}
			newEnv(t, iotape, "", nil).againstItself(t, p.argv)
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
			e.againstItself(t, []string{"unshare", "-m", prog})
		})
	}
}

func (e *env) againstItself(t *testing.T, argv []string) {
	t.Helper()
	want := e.straceCalls(t, argv)
	text, tape := filepath.Join(e.dir, "strace"), filepath.Join(e.dir, "imported.tape")
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), e.iotape, "convert", "--no-index", "--json", text, tape)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // it says 1: something was left out
	var done format.Done
	if err := json.Unmarshal([]byte(stdout.String()), &done); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	for what, n := range done.Left {
		if !strings.HasPrefix(what, "of ") && !strings.Contains(what, "/unknown/") { // or made up
			t.Errorf("left out: %d %s", n, what)
		}
	}
	printed, _ := e.run(t, e.iotape, "print", "--verbose", "--max-bytes", "-1", "--time", "none", tape)
	got := parseCalls(t, printed)
	failed := map[string]bool{}
	for thread := range want {
		if got[thread] == nil {
			t.Errorf("thread %s has no calls", thread)
			continue
		}
		if len(got[thread]) != len(want[thread]) {
			t.Errorf("thread %s: %d calls, not %d", thread, len(got[thread]), len(want[thread]))
		}
		for i, w := range want[thread][:min(len(want[thread]), len(got[thread]))] {
			g := got[thread][i]
			if g.name != w.name && !strings.HasPrefix(w.name, "syscall_0x") {
				t.Fatalf("call %d\n  strace %.300s\n  print  %.300s", i, w.text, g.text)
			}
			if strings.HasPrefix(w.name, "sendm") && strings.Contains(w.text, `"...`) {
				continue // print does not show a message of which bytes in the middle lack
			}
			if what := w.lacks(w, g); what != "" && !leftOut(&done, w.name) && !failed[w.name+what] {
				failed[w.name+what] = true
				t.Errorf("call %d: %s\n  strace %.600s\n  print  %.600s", i, what, w.text, g.text)
			}
		}
	}
}

// leftOut reports whether the conversion said that it left out a part of such calls.
func leftOut(done *format.Done, call string) bool {
	for what := range done.Left {
		if strings.HasPrefix(what, "of "+call+": ") {
			return true
		}
	}
	return false
}

// TestStraceRoundTrip turns recordings into strace's text and back: operations, results,
// paths and content are the same.
func TestStraceRoundTrip(t *testing.T) {
	testenv.Short(t, "records many programs")
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "setarch", "cc", "unshare")
	iotape := testenv.Iotape(t)
	check := func(t *testing.T, e *env, argv []string) {
		e.printedCalls(t, argv) // records x.tape
		before, text, after := filepath.Join(e.dir, "x.tape"), filepath.Join(e.dir, "x.strace"), filepath.Join(e.dir,
			"y.tape")
		e.run(t, "sh", "-c", `"$0" convert "$1" "$2" || test $? = 1; "$0" convert --no-index "$2" "$3" || test $? = 1`,
			iotape, before, text, after)
		want, got := straceFacts(t, before), straceFacts(t, after)
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Fatalf("call %d of %d and %d:\n  %.500s\n  %.500s", i, len(want), len(got), factAt(want, i),
					factAt(got, i))
			}
		}
		if len(want) < 10 {
			t.Errorf("%d calls", len(want))
		}
	}
	for _, p := range deterministic {
		t.Run(p.name, func(t *testing.T) {
			if p.needs != "" {
				testenv.NeedProgram(t, p.needs)
			}
			check(t, newEnv(t, iotape, "", nil), p.argv)
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
			check(t, e, []string{"unshare", "-m", prog})
		})
	}
}

func factAt(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

// straceFacts are what strace's text keeps of a tape.
func straceFacts(t *testing.T, name string) []string {
	t.Helper()
	tape, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	var facts []string
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind != event.Call || ev.Flags&event.Interrupted != 0 {
			continue
		}
		fact := fmt.Sprintf("%d %s = %d %s", ev.TID, ev.Spec().Name, ev.Ret, event.ErrnoName(ev.Errno))
		for i := range ev.Paths {
			fact += fmt.Sprintf(" %q=%q", ev.Paths[i].Raw, ev.Paths[i].Abs)
		}
		for i := range ev.Files {
			f := &ev.Files[i]
			byHandle := ev.Op == event.OpOpenByHandleAt && f.Arg == event.ResultArg // which the text does not have
			if f.Path != "" && f.Path[0] == '/' && !ev.Spec().NoCall && f.Arg != event.MemoryArg && !byHandle {
				fact += fmt.Sprintf(" %d<%s>", f.FD, f.Path)
			}
		}
		for i := range ev.Bufs {
			if b := &ev.Bufs[i]; ev.Spec().IsContent(int(b.Arg)) && b.Len > 0 {
				data, missing, err := tape.ContentZero(b, nil)
				if err != nil {
					t.Fatal(err)
				}
				fact += fmt.Sprintf(" %d: %d bytes %x, without %d, %v", b.Arg, b.Len, sha256.Sum256(data), missing,
					b.Parts)
			}
		}
		facts = append(facts, fact)
	}
	return facts
}

// TestStraceFamily reads the files that strace -ff writes, one for each process: as a directory
// and one by one they are one host, with the tree of its processes.
func TestStraceFamily(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "strace")
	e := newEnv(t, testenv.Iotape(t), "", nil)
	family := filepath.Join(e.dir, "family")
	e.run(t, "mkdir", family)
	e.run(t, "strace", "-ff", "-ttt", "-o", filepath.Join(family, "t"),
		"sh", "-c", "cat </dev/null; (echo a; cat </dev/null) | cat; :")
	files, err := filepath.Glob(filepath.Join(family, "t.*"))
	if err != nil || len(files) < 4 {
		t.Fatalf("strace wrote %q, %v", files, err)
	}
	merged, converted := filepath.Join(e.dir, "merged.tape"), filepath.Join(e.dir, "converted.tape")
	e.run(t, append([]string{e.iotape, "merge", "--no-index", "-o", merged}, files...)...)
	if err := os.WriteFile(filepath.Join(family, "t.1"), nil, 0o600); err != nil { // a process without calls
		t.Fatal(err)
	}
	matched := filepath.Join(e.dir, "matched.tape")
	// It says 1 if something was left out.
	_ = exec.CommandContext(t.Context(), e.iotape, "convert", "--no-index", family, converted).Run()
	_ = exec.CommandContext(t.Context(), e.iotape, "convert", "--no-index", filepath.Join(family, "t.*"), matched).Run()
	for _, name := range []string{merged, converted, matched} {
		tape, err := trace.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer tape.Close()
		made, seen := map[uint32]bool{}, map[uint32]bool{}
		for ev, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if seen[ev.PID] = true; ev.Kind == event.Forked {
				made[ev.Child] = true
			}
		}
		if n := len(tape.Manifest().Hosts); n != 1 || len(seen) != len(files) || len(made) != len(files)-1 {
			t.Errorf("%s: %d hosts, %d processes, of which %d were made by others; want 1, %d and %d",
				filepath.Base(name), n, len(seen), len(made), len(files), len(files)-1)
		}
	}
}
