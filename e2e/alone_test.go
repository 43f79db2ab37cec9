// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// Without iotape-full, iotape records, also what it would index, and names the program that the other commands need.
func TestAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := os.ReadFile(testenv.Iotape(t))
	if err != nil {
		t.Fatal(err)
	}
	iotape := filepath.Join(dir, "iotape")
	if err := os.WriteFile(iotape, b, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "i=0; while [ $i -lt 12000 ]; do echo $i; i=$((i+1)); echo $i; done > large"
	for _, tt := range []struct {
		name   string
		argv   []string
		status int
		prints string
	}{
		{"help", []string{"--help"}, 0, "Record a program"},
		{"record", []string{"record", "-o", "large.tape", "--", "sh", "-c", script}, 0, "sealed in"},
		{"stat", []string{"stat", "large.tape"}, 0, "write"},
		{"query", []string{"query", "large.tape", "SELECT 1"}, 2, "install it beside iotape"},
		{"completion", []string{"completion", "bash"}, 2, "iotape-full"},
		{"no command", []string{"qery"}, 2, "unknown command"},
	} {
		cmd := exec.Command(iotape, tt.argv...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH=/usr/bin:/bin")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != tt.status || !strings.Contains(string(out), tt.prints) {
			t.Errorf("%s: status %d, want %d; printed %q, want %q in it", tt.name, got, tt.status, out, tt.prints)
		}
		if strings.Contains(string(out), "index") && tt.name == "record" {
			t.Errorf("record speaks of an index that nobody can make: %s", out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "large.tape", "index.json")); err == nil {
		t.Error("the tape has an index, of which program?")
	}
}
