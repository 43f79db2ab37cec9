// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/testenv"
)

// TestModel checks when the modelled device has done requests: one arm seeks and does one
// after the other, many do them side by side; flushes cost what there is to flush. The
// program is told the time, so nothing here waits.
func TestModel(t *testing.T) {
	testenv.NeedProgram(t, "gcc")
	program, err := compile(t.Context(), t.TempDir(), "slowfs", slowfsSource, "-pthread", "-Wextra", "-Werror")
	if err != nil {
		t.Fatal(err)
	}
	const unit = 64 << 10
	type request struct {
		what    string
		file    int
		off, n  int64
		at, end int64 // ms
	}
	for _, c := range []struct {
		name     string
		flags    []string
		requests []request
	}{
		{"one arm", []string{"-seek", "3ms", "-transfer", "1ms"}, []request{
			{"read", 1, 0, unit, 0, 4},
			{"read", 1, unit, unit, 4, 5},       // goes on where the arm is
			{"read", 2, 2 * unit, unit, 4, 9},   // waits for it, and seeks
			{"read", 2, 0, 2 * unit, 20, 25},    // the arm was free; seeks back
			{"read", 2, 2 * unit, unit, 20, 26}, // goes on
		}},
		{"two channels", []string{"-arms", "2", "-seek", "1ms", "-transfer", "1000us"}, []request{
			{"write", 1, 0, unit, 0, 2},
			{"write", 1, unit, unit, 0, 2},
			{"write", 1, 2 * unit, unit, 0, 4}, // seeks too: there is no arm to be at a place
			{"read", 1, 2 * unit, unit, 0, 4},
			{"flush", 1, 0, 0, 4, 5},
			{"read", 2, 0, unit, 4, 6}, // beside the flush
		}},
		{"flushes", []string{"-seek", "3ms", "-transfer", "1ms"}, []request{
			{"flush", 1, 0, 0, 0, 0}, // nothing was written
			{"read", 1, 0, unit, 0, 4},
			{"flush", 1, 0, 0, 4, 4},
			{"write", 1, unit, unit, 4, 5},
			{"flush", 2, 0, 0, 5, 5},         // of another file
			{"flush", 1, 0, 0, 5, 8},         // a seek
			{"flush", 1, 0, 0, 6, 8},         // relies on the one under way
			{"write", 1, 0, unit, 7, 12},     // waits for the arm, which is elsewhere
			{"flush", 1, 0, 0, 12, 15},       // of the write since
			{"flush", 1, 0, 0, 16, 16},       // nothing was written since
			{"write", 1, unit, unit, 16, 20}, // the arm is where it wrote that
			{"write", 1, 2 * unit, unit, 20, 21},
			{"flush", 1, 0, 0, 21, 24}, // of both
		}},
		{"no time", []string{"-seek", "0s", "-transfer", "0ns"}, []request{{"write", 1, 0, unit, 7, 7}, {"flush", 1, 0, 0, 7, 7}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var in, want strings.Builder
			for _, r := range c.requests {
				fmt.Fprintf(&in, "%d %s %d %d %d\n", r.at*1e6, r.what, r.file, r.off, r.n)
				fmt.Fprintf(&want, "%d\n", r.end*1e6)
			}
			cmd := exec.CommandContext(t.Context(), program, append(c.flags, "-model")...)
			cmd.Stdin = strings.NewReader(in.String())
			got, err := cmd.CombinedOutput()
			if err != nil || string(got) != want.String() {
				t.Errorf("%v, done at\n%swant\n%s", err, got, want.String())
			}
		})
	}
	for _, args := range [][]string{{}, {"-model", "x"}, {"-arms", "0", "-model"}, {"-seek", "-1ms", "-model"},
		{"-seek", "3", "-model"}, {"-transfer", "nanms", "-model"}, {"a", "b", "c"}} {
		err := exec.CommandContext(t.Context(), program, args...).Run()
		if bad := (*exec.ExitError)(nil); !errors.As(err, &bad) || bad.ExitCode() != 2 {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestSlowfs: what programs do to files works there, and is done to what is behind.
func TestSlowfs(t *testing.T) {
	testenv.Short(t, "it waits for a slow file system")
	testenv.NeedRoot(t)
	testenv.NeedFUSE(t)
	testenv.NeedProgram(t, "gcc")
	s := &study{o: Options{Dir: t.TempDir(), Memory: t.TempDir()}}
	var err error
	if s.slowfs, err = compile(t.Context(), s.o.Dir, "slowfs", slowfsSource, "-pthread"); err != nil {
		t.Fatal(err)
	}
	m, err := slowfs("-seek", "100us", "-transfer", "10us")(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	open := true
	shut := func() {
		if open {
			open = false
			if err := m.close(); err != nil {
				t.Error(err)
			}
		}
	}
	defer shut()
	name := func(s string) string { return filepath.Join(m.dir, s) }
	ok := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 50_000) // several requests, and a part
	f, err := os.OpenFile(name("a"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(big)
	ok("write", err)
	ok("fsync", f.Sync())
	got := make([]byte, len(big)+10)
	n, err := f.ReadAt(got, 0)
	if n != len(big) || err != io.EOF || !bytes.Equal(got[:n], big) {
		t.Errorf("read %d bytes: %v", n, err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil || !bytes.Equal(b, big[:4096]) {
		t.Errorf("map: %v", err)
	} else {
		ok("unmap", unix.Munmap(b))
	}
	ok("link", os.Link(name("a"), name("b")))
	ok("symlink", os.Symlink("b", name("c")))
	ok("mkdir", os.Mkdir(name("d"), 0o700))
	ok("rename", os.Rename(name("a"), name("d/a")))
	ok("mkfifo", unix.Mkfifo(name("d/fifo"), 0o600))
	ok("chmod", os.Chmod(name("c"), 0o604))
	ok("chown", os.Chown(name("d"), 12, 34))
	ok("allocate", unix.Fallocate(int(f.Fd()), 0, 0, 1<<20))
	ok("truncate", os.Truncate(name("b"), 5))
	var st unix.Stat_t
	ok("stat", unix.Stat(name("d/a"), &st))
	if st.Size != 5 || st.Nlink != 2 || st.Mode&0o777 != 0o604 {
		t.Errorf("%+v", st)
	}
	ok("unlink", os.Remove(name("b")))
	ok("unlink", os.Remove(name("d/a")))
	ok("fstat of what has no name", unix.Fstat(int(f.Fd()), &st))
	if st.Size != 5 {
		t.Errorf("%+v", st)
	}
	_, err = f.WriteAt([]byte("x"), 7)
	ok("write to what has no name", err)
	ok("close", f.Close())
	sync, err := os.OpenFile(name("log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND|os.O_SYNC, 0o644)
	ok("open", err)
	for range 2 {
		_, err = sync.WriteString("line\n")
		ok("append", err)
	}
	ok("close", sync.Close())
	if b, err := os.ReadFile(name("log")); err != nil || string(b) != "line\nline\n" {
		t.Errorf("%q, %v", b, err)
	}
	for i := range 300 { // more than one answer lists
		ok("write", os.WriteFile(name(fmt.Sprintf("d/a-file-with-a-long-name-%03d", i)), nil, 0o600))
	}
	if list, err := os.ReadDir(name("d")); err != nil || len(list) != 301 {
		t.Errorf("%d names, %v", len(list), err)
	}
	// Another user: the mount is for all, permissions count, and what he makes is his.
	ok("chmod", os.Chmod(m.dir, 0o777))
	other := exec.CommandContext(t.Context(), "sh", "-c", "echo hello >mine && cat mine && ! ls d 2>/dev/null")
	other.Dir, other.SysProcAttr = m.dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	for d := s.o.Dir; d != filepath.Clean(os.TempDir()) && d != "/"; d = filepath.Dir(d) {
		ok("chmod", os.Chmod(d, 0o755)) // the test's own, up to it
	}
	if out, err := other.CombinedOutput(); err != nil || string(out) != "hello\n" {
		t.Errorf("%q, %v", out, err)
	}
	ok("stat", unix.Stat(name("mine"), &st))
	if st.Uid != 65534 || st.Gid != 65534 {
		t.Errorf("it belongs to %d:%d", st.Uid, st.Gid)
	}
	ok("remove", os.RemoveAll(name("d")))
	// It ends also if somebody is still there.
	here, err := os.Open(m.dir)
	ok("open", err)
	defer here.Close()
	shut()
	if b, err := os.ReadFile("/proc/mounts"); err != nil || bytes.Contains(b, []byte(m.dir)) {
		t.Errorf("it is still mounted: %v", err)
	}
}
