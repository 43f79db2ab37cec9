// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/bench/workload"
	"github.com/iotape/iotape/internal/testenv"
)

// TestProgramsAreTheScripts holds the table against the files.
func TestProgramsAreTheScripts(t *testing.T) {
	scripts, err := filepath.Glob("*.sh")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range workload.Programs() {
		names = append(names, p.Name+".sh")
	}
	if got, want := strings.Join(names, " "), strings.Join(scripts, " "); got != want {
		t.Errorf("Programs:\n%s\nscripts:\n%s", got, want)
	}
}

// TestNative runs every program twice, from anywhere, without recording it.
func TestNative(t *testing.T) {
	testenv.Short(t, "it runs every workload twice")
	install := filepath.Join(t.TempDir(), "made", "here")
	if err := workload.Install(install); err != nil {
		t.Fatal(err)
	}
	for _, p := range workload.Programs() {
		t.Run(p.Name, func(t *testing.T) {
			testenv.NeedProgram(t, p.Needs...)
			times := 2
			if testing.Short() {
				times = 1
			}
			for range times {
				around := t.TempDir()
				dir := filepath.Join(around, "work")
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				run(t, p.Command(install, dir, workload.Prep))
				before := names(t, dir)
				run(t, p.Command(install, dir, workload.Run))
				after := names(t, dir)
				if !p.Racy && strings.Join(before, "\n") == strings.Join(after, "\n") {
					t.Errorf("run left the names as prep had laid them: it did nothing")
				}
				if got := names(t, around); len(got) != len(after)+1 {
					t.Errorf("wrote outside its directory: %q", got)
				}
			}
		})
	}
}

func run(t *testing.T, argv []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Fatalf("%q: %v, output:\n%s", argv, err, out)
	}
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if p != dir {
			names = append(names, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
