// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestProgramsHaveNames: the files that execve maps (programs, loaders, interpreters of scripts) have names in
// statistics and print, although no call opened them.
func TestProgramsHaveNames(t *testing.T) {
	forBackends(t, func(t *testing.T, backend string) {
		e := newEnv(t, testenv.Iotape(t), "", nil)
		script := filepath.Join(e.dir, "script")
		if err := os.WriteFile(script, []byte("#!/bin/sh\nexec cat script\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		// A program that is gone when the recording is sealed has the name that it was executed by.
		run := "cd " + quoted(e.dir) + " && ./script && cp /bin/true gone && ./gone && rm gone"
		if _, stderr, status := e.records(t, []string{"--backend", backend}, "sh", "-c", run); status != 0 {
			t.Fatalf("status %d\n%s", status, stderr)
		}
		out, _, _ := e.try(t, e.iotape, "stat", "--json", "--top", "1000", "a.tape")
		var stat struct {
			Files []struct {
				Path string `json:"path"`
				Ino  uint64 `json:"ino"`
			} `json:"files"`
		}
		if err := json.Unmarshal([]byte(out), &stat); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var names []string
		for _, f := range stat.Files {
			if names = append(names, f.Path); f.Path == "" {
				t.Errorf("inode %d has no name", f.Ino)
			}
		}
		if backend == "ebpf" {
			wanted := []string{filepath.Join(e.dir, "gone")}
			for _, program := range []string{"/bin/sh", "/bin/cat"} {
				want, err := filepath.EvalSymlinks(program)
				if err != nil {
					t.Fatal(err)
				}
				wanted = append(wanted, want)
			}
			for _, want := range wanted {
				if !slices.Contains(names, want) {
					t.Errorf("no file %s, got %q", want, names)
				}
			}
		}
		if out, _, _ := e.try(t, e.iotape, "print", "a.tape"); strings.Contains(out, "<inode ") {
			t.Errorf("print shows numbers of files:\n%s", out)
		}
	})
}
