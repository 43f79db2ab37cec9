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

// TestLibrary builds a program of another module that records, reads and replays with the
// packages of docs/library.md, and runs it: as root and as an ordinary user.
func TestLibrary(t *testing.T) {
	testenv.Short(t, "it builds a program of another module")
	t.Parallel()
	built := filepath.Join(t.TempDir(), "program")
	buildModule(t, "testdata/library", built)
	t.Run("self", func(t *testing.T) { runLibrary(t, built, t.TempDir(), nil) })
	t.Run("ordinary user", func(t *testing.T) {
		cred := testenv.NeedUser(t)
		dir := testenv.UserDir(t, cred)
		program := filepath.Join(dir, "program")
		copyFile(t, program, built)
		runLibrary(t, program, dir, cred)
	})
}

func runLibrary(t *testing.T, program, dir string, cred *syscall.Credential) {
	cmd := exec.Command(program, dir, "sh", "-c", "head -c 100000 /dev/zero > out; exit 3")
	cmd.Dir = dir
	if cred != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	}
	out, err := cmd.CombinedOutput()
	want := "recorded command.tape: status 3, lost 0\nlibrary test: 100000 bytes written to out\nreplayed: " +
		"agrees true\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

// buildModule builds the program whose source is in a directory as a module of its own,
// which requires this one.
func buildModule(t *testing.T, source, program string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	if err := os.CopyFS(module, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	const path = "github.com/iotape/iotape"
	text := strings.Replace(string(mod), "module "+path, "module example.org/library", 1) +
		"\nrequire " + path + " v0.0.0\n\nreplace " + path + " => " + root + "\n"
	for name, data := range map[string]string{"go.mod": text, "go.sum": string(sum)} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-mod=mod", "-o", program, ".")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
}
