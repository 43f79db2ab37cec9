// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
)

// TestPOSIX runs the same calls on a lower directory and through a mount of another one:
// results, errors and what is left must be the same, but for the exceptions, which have
// a reason in docs/mount.md.
func TestPOSIX(t *testing.T) {
	testenv.Short(t, "it runs a suite of thousands of checks")
	m := mounted(t, Options{})
	lower := t.TempDir()
	var want, got map[string][]string
	child(t, "posix", lower, &want)
	child(t, "posix", m.Mountpoint, &got)
	for _, c := range posixCases {
		t.Run(c.name, func(t *testing.T) {
			w := want[c.name]
			if len(w) == 0 {
				t.Fatal("the case did nothing")
			}
			diff := cmp.Diff(w, got[c.name])
			switch {
			case c.exception == "" && diff != "":
				t.Errorf("below the mount (-) and through it (+):\n%s", diff)
			case c.exception != "" && diff == "":
				t.Errorf("an exception that is none any more: %s", c.exception)
			}
		})
	}
}

// TestExceptionsAreDocumented keeps the page from saying less than the table.
func TestExceptionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/mount.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range posixCases {
		if c.exception != "" && !strings.Contains(string(page), c.exception) {
			t.Errorf("docs/mount.md does not have the exception %q", c.exception)
		}
	}
}

func runPosixCases(dir string) (any, error) {
	all := map[string][]string{}
	for _, c := range posixCases {
		x := &posixRun{dir: filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-"))}
		if err := os.Mkdir(x.dir, 0o755); err != nil {
			return nil, err
		}
		unix.Umask(0o022)
		c.do(x)
		unix.Umask(0o022)
		all[c.name] = x.log
	}
	return all, nil
}

// posixRun is a case at work: it makes calls below dir and notes what they say.
type posixRun struct {
	dir string
	log []string
}

func (x *posixRun) path(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return x.dir + "/" + name
}

// say notes a result.
func (x *posixRun) say(what string, err error, values ...any) {
	line := what + " = "
	var e syscall.Errno
	switch {
	case errors.As(err, &e):
		line += event.ErrnoName(e)
	case err != nil:
		line += err.Error()
	default:
		line += strings.TrimSpace(fmt.Sprintln(append([]any{"ok"}, values...)...))
	}
	x.log = append(x.log, line)
}

func (x *posixRun) open(name string, flags int, mode uint32) int {
	fd, err := unix.Open(x.path(name), flags|unix.O_CLOEXEC, mode)
	x.say(fmt.Sprintf("open %s %#x %#o", name, flags, mode), err)
	return fd
}

func (x *posixRun) file(name, content string) {
	x.say("write file "+name, os.WriteFile(x.path(name), []byte(content), 0o644))
}

// soonFlock is flock without waiting, but tried for ten seconds: the kernel tells a FUSE file
// system of a last close after close has returned (docs/mount.md).
func soonFlock(fd, how int) error {
	until := time.Now().Add(10 * time.Second)
	for {
		err := unix.Flock(fd, how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(until) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func (x *posixRun) cat(name string) {
	b, err := os.ReadFile(x.path(name))
	if len(b) > 64 {
		b = []byte(fmt.Sprintf("%d bytes, %q", len(b), b[:64]))
	}
	x.say("cat "+name, err, string(b))
}

func (x *posixRun) write(fd int, s string) {
	n, err := unix.Write(fd, []byte(s))
	x.say("write "+s, err, n)
}

func (x *posixRun) pwrite(fd int, s string, off int64) {
	n, err := unix.Pwrite(fd, []byte(s), off)
	x.say(fmt.Sprintf("pwrite %s at %d", s, off), err, n)
}

func (x *posixRun) pread(fd int, n int, off int64) {
	b := make([]byte, n)
	n, err := unix.Pread(fd, b, off)
	x.say(fmt.Sprintf("pread at %d", off), err, fmt.Sprintf("%q", b[:max(n, 0)]))
}

func (x *posixRun) lstat(name string) {
	var st unix.Stat_t
	err := unix.Lstat(x.path(name), &st)
	size := st.Size
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		size = 0
	}
	x.say("lstat "+name, err, fmt.Sprintf("%o %d:%d links %d size %d rdev %x", st.Mode, st.Uid, st.Gid, st.Nlink, size,
		st.Rdev))
}

func (x *posixRun) fstat(fd int) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	x.say("fstat", err, fmt.Sprintf("%o %d:%d links %d size %d", st.Mode, st.Uid, st.Gid, st.Nlink, st.Size))
}

func (x *posixRun) do(what string, err error, values ...any) { x.say(what, err, values...) }
func (x *posixRun) mkdir(name string, mode uint32) {
	x.say(fmt.Sprintf("mkdir %s %#o", short(name), mode), unix.Mkdir(x.path(name), mode))
}
func (x *posixRun) rmdir(name string)  { x.say("rmdir "+name, unix.Rmdir(x.path(name))) }
func (x *posixRun) unlink(name string) { x.say("unlink "+name, unix.Unlink(x.path(name))) }
func (x *posixRun) link(a, b string) {
	x.say("link "+a+" "+short(b), unix.Link(x.path(a), x.path(b)))
}
func (x *posixRun) symlink(to, name string) {
	x.say("symlink "+short(name), unix.Symlink(to, x.path(name)))
}
func (x *posixRun) rename(a, b string) {
	x.say("rename "+a+" "+short(b), unix.Rename(x.path(a), x.path(b)))
}
func (x *posixRun) rename2(a, b string, flags uint) {
	x.say(fmt.Sprintf("renameat2 %s %s %d", a, b, flags),
		unix.Renameat2(unix.AT_FDCWD, x.path(a), unix.AT_FDCWD, x.path(b), flags))
}
func (x *posixRun) chmod(name string, mode uint32) {
	x.say(fmt.Sprintf("chmod %s %#o", name, mode), unix.Chmod(x.path(name), mode))
}
func (x *posixRun) chown(name string, uid, gid int) {
	x.say(fmt.Sprintf("lchown %s %d:%d", name, uid, gid), unix.Lchown(x.path(name), uid, gid))
}
func (x *posixRun) truncate(name string, n int64) {
	x.say(fmt.Sprintf("truncate %s %d", name, n), unix.Truncate(x.path(name), n))
}

func (x *posixRun) list(name string) {
	entries, err := os.ReadDir(x.path(name))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name()+" "+e.Type().String())
	}
	x.say("list "+name, err, strings.Join(names, ","))
}

func (x *posixRun) getxattr(name, attr string) {
	b := make([]byte, 1024)
	n, err := unix.Lgetxattr(x.path(name), attr, b)
	x.say("getxattr "+name+" "+attr, err, fmt.Sprintf("%q", b[:max(n, 0)]))
}

func (x *posixRun) setxattr(name, attr, value string, flags int) {
	x.say("setxattr "+name+" "+attr, unix.Lsetxattr(x.path(name), attr, []byte(value), flags))
}

// same notes whether two names are of one file.
func (x *posixRun) same(a, b string) {
	var s, t unix.Stat_t
	err := errors.Join(unix.Lstat(x.path(a), &s), unix.Lstat(x.path(b), &t))
	x.say("same "+a+" "+b, err, s.Ino == t.Ino && s.Dev == t.Dev)
}

// as does something as another user, in a thread that ends with it.
func (x *posixRun) as(uid, gid int, groups []uint32, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		p := unsafe.Pointer(unsafe.SliceData(groups))
		_, _, e1 := syscall.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(p), 0)
		_, _, e2 := syscall.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid))
		_, _, e3 := syscall.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if e1|e2|e3 != 0 {
			x.say("become", errors.New("cannot become another user"))
			return
		}
		do()
	}()
	<-done
}

func short(name string) string {
	if len(name) > 40 {
		return fmt.Sprintf("%s… (%d)", name[:8], len(name))
	}
	return name
}

// age returns whether a time is of the last minute, and not just the start of the epoch.
func recent(ts unix.Timespec) bool { return time.Since(time.Unix(ts.Sec, ts.Nsec)) < time.Minute }

func sortedNames(all []string) []string { slices.Sort(all); return all }
