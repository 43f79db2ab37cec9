// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// A small recording is not indexed, and a large one is; a query makes the index where it is missing.
func TestSmallTapeIsIndexedWhenQueried(t *testing.T) {
	t.Parallel()
	iotape, dir := testenv.Iotape(t), t.TempDir()
	run := func(argv ...string) string {
		t.Helper()
		cmd := exec.Command(iotape, argv...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("iotape %q: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	for _, tt := range []struct {
		tape, script string
		indexed      bool
	}{
		{"small.tape", "echo some > small", false},
		{"large.tape", `i=0; while [ $i -lt 12000 ]; do echo $i; i=$((i+1)); echo $i; done > large`, true},
	} {
		run("record", "-o", tt.tape, "--", "sh", "-c", tt.script)
		index := filepath.Join(dir, tt.tape, "index.json")
		if _, err := os.Stat(index); (err == nil) != tt.indexed {
			t.Errorf("%s: index.json after recording: %v, want it: %v", tt.tape, err, tt.indexed)
		}
		out := run("query", "--csv", tt.tape, "SELECT count(*) > 0 AS some FROM events WHERE op = 'write'")
		if !strings.Contains(out, "true") {
			t.Errorf("%s: a query for writes prints %q", tt.tape, out)
		}
		if _, err := os.Stat(index); err != nil {
			t.Errorf("%s: after a query: %v", tt.tape, err)
		}
	}
}

// A tape that its reader cannot write to is queried, too, and stays as it is.
func TestTapeOfAnotherUserIsQueried(t *testing.T) {
	t.Parallel()
	cred := testenv.NeedUser(t)
	iotape, dir, temp := testenv.Iotape(t), testenv.UserDir(t, cred), testenv.UserDir(t, cred)
	tape := filepath.Join(dir, "a.tape")
	if out, err := exec.Command(iotape, "record", "-o", tape, "--", "sh", "-c", "echo some > "+dir+"/some").
		CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
	if err := os.Chmod(tape, 0o555); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(iotape, "query", "--csv", tape, "SELECT count(*) > 0 AS some FROM events WHERE op = 'write'")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "true") {
		t.Errorf("query of another user's tape: %v, printed %q, want true", err, out)
	}
	if _, err := os.Stat(filepath.Join(tape, "index.json")); err == nil {
		t.Error("the other user's tape has an index now")
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("query left %v in the directory for temporary files (%v)", left, err)
	}
}
