// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// ModuleRoot returns the directory of iotape's go.mod.
func ModuleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}

// DependOnModule makes the cached result of the test depend on every file of the
// module, for a test that has other programs read them: the go command notes only
// what the test itself looks at, and would take an old result for a new one.
func DependOnModule(t testing.TB) {
	t.Helper()
	root := ModuleRoot(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // gone again: somebody is at work
		case d.IsDir() && (d.Name() == ".git" || path == filepath.Join(root, "bin")):
			return filepath.SkipDir
		}
		_, _ = os.Stat(path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// program is one that tests run, built once.
type program struct {
	once sync.Once
	path string
	err  error
}

var iotape, full, agent program

func (p *program) build(t testing.TB, name string) string {
	t.Helper()
	root := ModuleRoot(t)
	p.once.Do(func() {
		DependOnModule(t)
		p.path = filepath.Join(root, "bin", "test", name)
		p.err = build(root, "./cmd/"+name, p.path)
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.path
}

// Agent is Iotape for the iotape-agent program.
func Agent(t testing.TB) string { return agent.build(t, "iotape-agent") }

// Iotape builds the iotape program, and iotape-full beside it, and returns its path. All
// test binaries of the module share these, in bin/test; linking them takes seconds, so the
// first builds them and the others find that nothing has changed. For a command that runs
// as another user see IotapeFor.
func Iotape(t testing.TB) string {
	t.Helper()
	full.build(t, fullName)
	return iotape.build(t, "iotape")
}

// fullName is the program with all commands, which iotape finds beside itself.
const fullName = "iotape-full"

// IotapeFor is Iotape for a command that runs with cred: the same file where that
// user can reach it, else a copy in a UserDir.
func IotapeFor(t testing.TB, cred *syscall.Credential) string {
	t.Helper()
	path := Iotape(t)
	if cred == nil || canExecute(path, cred) {
		return path
	}
	dir := UserDir(t, cred)
	for _, from := range []string{path, filepath.Join(filepath.Dir(path), fullName)} {
		if err := copyProgram(filepath.Join(dir, filepath.Base(from)), from); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "iotape")
}

func canExecute(path string, cred *syscall.Credential) bool {
	cmd := exec.Command("/usr/bin/test", "-x", path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	return cmd.Run() == nil
}

func copyProgram(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// build builds a main package of the module at root. One process at a time does
// so for each program; another that runs the program meanwhile is not disturbed,
// because go build replaces the file only if it is out of date, by another file.
func build(root, pkg, out string) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(out+".lock", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // and with it the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}

	// Not in place: a program that runs cannot be written.
	next := out + ".next"
	if err := link(out, next); err != nil {
		return err
	}
	defer os.Remove(next)
	before, _ := os.Stat(next)
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", next, pkg)
	cmd.Dir = root
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, strings.TrimSpace(string(b)))
	}
	after, err := os.Stat(next)
	if err != nil {
		return err
	}
	if before != nil && os.SameFile(before, after) {
		return nil // up to date
	}
	return os.Rename(next, out)
}

// link gives the present program, if there is one, a second name for go build to
// find it up to date, or to replace it.
func link(from, to string) error {
	if err := os.Remove(to); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Link(from, to); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
