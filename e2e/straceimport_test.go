package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
	out, err := exec.CommandContext(t.Context(), e.iotape, "convert", "--no-index", text, tape).CombinedOutput()
	if _, e := os.Stat(tape); e != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "not understood") {
		t.Errorf("%s", out)
	}
	t.Logf("%s", out)
	stdout, _ := e.run(t, e.iotape, "print", "--verbose", "--max-bytes", "-1", "--time", "none", tape)
	got := parseCalls(t, stdout)
	failed := map[string]bool{}
	for thread := range want {
		if got[thread] == nil {
			t.Errorf("thread %s has no calls", thread)
			continue
		}
		compareThread(t, failed, want[thread], want[thread], got[thread])
	}
}
