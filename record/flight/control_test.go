// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/rundir"
	"github.com/iotape/iotape/internal/testenv"
)

// running is Running, without what runs elsewhere on the machine.
func running(t *testing.T, dir string) ([]*Remote, error) {
	all, err := Running(t.Context())
	return slices.DeleteFunc(all, func(r *Remote) bool { return !strings.HasPrefix(r.path, dir) }), err
}

func TestControl(t *testing.T) {
	testenv.Short(t, "it records for a while")
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	fail := false
	c, err := Listen(func() Info { return Info{PID: os.Getpid(), Name: "x", Bytes: 5} }, func() (string, error) {
		if fail {
			return "", errors.New("the disk is full")
		}
		return "/d/x-1.tape", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	stale, err := net.Listen("unix", filepath.Join(dir, "iotape", "1.sock"))
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()

	all, err := running(t, dir)
	if err != nil || len(all) != 1 || all[0].Name != "x" || all[0].Bytes != 5 {
		t.Fatalf("running: %+v, %v", all, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "iotape", "1.sock")); err == nil {
		t.Error("a socket that nobody listens on is left")
	}
	if tape, err := all[0].Dump(t.Context()); tape != "/d/x-1.tape" || err != nil {
		t.Errorf("dump: %q, %v", tape, err)
	}
	fail = true
	if _, err := all[0].Dump(t.Context()); err == nil || err.Error() != "the disk is full" {
		t.Errorf("dump that fails: %v", err)
	}
	// Nonsense, and too much of it, ends the connection and nothing else.
	for _, s := range []string{"{}\n", "\x00\xff\n", strings.Repeat(" ", 10000), `{"do":"leave"}` + "\n"} {
		conn, err := net.Dial("unix",
			filepath.Join(dir, "iotape", all[0].path[strings.LastIndexByte(all[0].path, '/')+1:]))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(s))
		b := make([]byte, 1000)
		n, _ := conn.Read(b)
		if n > 0 && !strings.Contains(string(b[:n]), `"error":"request`) {
			t.Errorf("%.20q: answer %q", s, b[:n])
		}
		conn.Close()
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if all, err := running(t, dir); len(all) != 0 || err != nil {
		t.Errorf("running after the end: %v, %v", all, err)
	}
}

// Nobody else may put sockets where ours are.
func TestControlDirectoryOfOthers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	theirs := filepath.Join(dir, "iotape")
	if err := os.Mkdir(theirs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(theirs, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := rundir.Check(theirs); err == nil {
		t.Error("a directory that all can write to is taken")
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := rundir.Check(link); err == nil {
		t.Error("a symbolic link is taken")
	}
	l, err := net.Listen("unix", filepath.Join(theirs, "1.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			t.Error("asked a socket in a directory of others")
			conn.Close()
		}
	}()
	all, err := Running(t.Context())
	for _, r := range all {
		if filepath.Dir(r.path) == theirs {
			t.Errorf("found %s", r.path)
		}
	}
	if err != nil {
		t.Error(err)
	}
}
