// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// A sealing that is killed has changed nothing: the next one makes the tape.
func TestKilledSealing(t *testing.T) {
	testenv.Short(t, "it kills a program many times")
	t.Parallel()
	iotape := testenv.Iotape(t)
	dir := t.TempDir()
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
	run("record", "-o", "x.tape", "--seal", "never", "--", "dd", "if=/dev/urandom", "of=data", "bs=1M", "count=128")
	partial := filepath.Join(dir, "x.tape.partial")
	before, err := os.Stat(filepath.Join(partial, "stream"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(iotape, "seal", "x.tape.partial")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	content := filepath.Join(partial, "tape", "content")
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if st, err := os.Stat(content); err == nil && st.Size() > 1<<20 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no content in %s", content)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("sealing was done before it was killed")
	}
	if _, err := os.Stat(filepath.Join(dir, "x.tape")); err == nil {
		t.Fatal("a killed sealing left a tape")
	}
	after, err := os.Stat(filepath.Join(partial, "stream"))
	if err != nil || after.Size() != before.Size() {
		t.Fatalf("the stream has changed: %v", err)
	}
	run("seal", "--final", "x.tape.partial")
	run("check", "x.tape")
	run("replay", "x.tape", "--into", "again", "--verify")
}
