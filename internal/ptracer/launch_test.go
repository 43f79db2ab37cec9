// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// launched runs a command that nobody traces to its end.
func launched(t *testing.T, c *Command) (Status, error) {
	t.Helper()
	l, err := Launch(c, func() {})
	if err != nil {
		return Status{}, err
	}
	defer l.Close()
	return l.Wait()
}

func TestLaunch(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	gated := 0
	st, err := launched(t, &Command{
		Argv:  []string{"sh", "-c", "grep TracerPid /proc/self/status; echo $HERE; exit 7"},
		Env:   append(os.Environ(), "HERE=there"),
		Files: [3]*os.File{nil, out, nil}, Gate: func(pid int) error { gated = pid; return nil },
	})
	if err != nil || st.Exit != 7 || st.Signal != 0 || gated != st.PID {
		t.Errorf("%+v, %v; gate for %d", st, err, gated)
	}
	b, err := os.ReadFile(out.Name())
	if err != nil || strings.Join(strings.Fields(string(b)), " ") != "TracerPid: 0 there" {
		t.Errorf("it wrote %q, %v", b, err)
	}
	if st, err := launched(t, &Command{Argv: []string{"sh", "-c", "kill -KILL $$"}}); err != nil ||
		st.Signal != unix.SIGKILL {
		t.Errorf("killed: %+v, %v", st, err)
	}
}

func TestLaunchFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := launched(t, &Command{Argv: []string{file}}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("not executable: %v", err)
	}
	if _, err := launched(t, &Command{Argv: []string{"no-such-command"}}); err == nil {
		t.Error("no such command: no error")
	}
	shut := errors.New("shut")
	pid := 0
	_, err := launched(t, &Command{Argv: []string{"true"}, Gate: func(p int) error { pid = p; return shut }})
	if !errors.Is(err, shut) || unix.Kill(pid, 0) != unix.ESRCH {
		t.Errorf("gate: %v; the stub is left: %v", err, unix.Kill(pid, 0))
	}
}
