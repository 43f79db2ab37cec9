package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"iotape/format"
	"iotape/internal/testenv"
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
		if !strings.HasPrefix(what, "of ") {
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
