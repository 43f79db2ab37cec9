// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/testenv"
)

// mount is an iotape mount at work, of lower at mnt in the environment's directory, to
// a.tape.
type mount struct {
	*env
	cmd   *exec.Cmd
	ended chan error
}

func startMount(t *testing.T, args ...string) *mount {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedFUSE(t)
	m := &mount{env: &env{iotape: testenv.Iotape(t), dir: t.TempDir()}, ended: make(chan error, 1)}
	for _, d := range []string{"lower", "mnt"} {
		if err := os.Mkdir(m.path(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.start(t, args...)
	return m
}

func (m *mount) path(name string) string { return filepath.Join(m.dir, name) }

func (m *mount) start(t *testing.T, args ...string) {
	t.Helper()
	m.cmd = exec.Command(m.iotape, append([]string{"mount", "lower", "mnt", "-o", "a.tape"}, args...)...)
	said, err := os.Create(m.path("said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	m.cmd.Dir, m.cmd.Stderr = m.dir, said
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { m.ended <- m.cmd.Wait() }()
	t.Cleanup(func() {
		m.cmd.Process.Kill()
		_ = unix.Unmount(m.path("mnt"), unix.MNT_DETACH)
	})
	waitFor(t, "the mount", m.mounted)
}

// said is what iotape mount has said.
func (m *mount) said() string {
	b, _ := os.ReadFile(m.path("said"))
	return string(b)
}

func (m *mount) mounted() bool {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	return bytes.Contains(b, []byte(" "+m.path("mnt")+" "))
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited for %s in vain", what)
}

// end waits for the tape.
func (m *mount) end(t *testing.T) {
	t.Helper()
	select {
	case err := <-m.ended:
		if err != nil {
			t.Fatalf("iotape mount: %v\n%s", err, m.said())
		}
	case <-time.After(5 * time.Minute): // a mount namespace that others made meanwhile has the mount, too
		t.Fatalf("iotape mount has not ended\n%s", m.said())
	}
	if m.mounted() {
		t.Error("still mounted")
	}
	m.run(t, m.iotape, "check", "a.tape")
}

// unmount unmounts, as soon as the kernel has let go of what the programs of the test used: a file
// that has just been closed can still be in use, for FUSE closes late.
func (e *env) unmount(t *testing.T, dir string) {
	t.Helper()
	waitFor(t, "the end of the use of "+dir, func() bool {
		stdout, stderr, err := e.try(t, "umount", dir)
		if err != nil && !strings.Contains(stderr, "busy") {
			t.Fatalf("umount: %v\n%s%s", err, stdout, stderr)
		}
		return err == nil
	})
}

// sh runs a script in the mount.
func (m *mount) sh(t *testing.T, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = m.path("mnt")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// work is a bit of everything.
const work = `
git init -q repo; cd repo; git config user.email a@b; git config user.name n
for i in $(seq 30); do mkdir -p d$((i%5)); seq $i >d$((i%5))/f$i; done
git add .; git commit -qm one; git gc -q; git mv d1 d9; git commit -qam two; git fsck
cd ..
umask 027; echo one >a; ln a b; ln -s a l; echo two >>b; mkdir -p x/y; mv a x/y/z; chmod 640 x/y/z
chown 1000:2000 x/y/z; mkfifo p; truncate -s 100000 hole; cp -a repo copy; rm -r repo/d2
setfattr -n user.attr -v value b; setfacl -m u:1000:rw b; touch -d 2001-02-03 l; flock b true
python3 - <<'P'
import mmap, os
f = open("mapped", "w+b"); f.truncate(20000)
m = mmap.mmap(f.fileno(), 20000); m[9000:9005] = b"hello"; m.flush(); m.close()
g = open("gone", "w+b"); os.unlink("gone"); g.write(b"x" * 5000); g.flush(); os.fstat(g.fileno())
os.rename("mapped", "mapped2")
t = os.open(".", os.O_TMPFILE | os.O_RDWR); os.write(t, b"tmp")
os.link("/proc/self/fd/%d" % t, "linked", src_dir_fd=0)
a = os.open("appended", os.O_CREAT | os.O_WRONLY | os.O_APPEND); os.write(a, b"one"); os.write(a, b"two")
P
/bin/cp /bin/true prog; ./prog`

// TestMountReplay records a bit of everything through a mount: the tape prints, counts,
// answers, and a replay makes the same tree with the same results.
func TestMountReplay(t *testing.T) {
	testenv.Short(t, "it records and replays through a mount")
	t.Parallel()
	testenv.NeedProgram(t, "git", "python3", "setfacl", "setfattr")
	m := startMount(t, "--keep-stream")
	m.sh(t, work)
	m.unmount(t, "mnt")
	m.end(t)
	contains(t, m.said(), "lost 0")
	text, _ := m.run(t, m.iotape, "print", "a.tape")
	for _, want := range []string{
		`linkat(AT_FDCWD, "a", AT_FDCWD, "b", 0) = 0`, `symlinkat("a", AT_FDCWD, "l") = 0`, `"user.attr", "value", 5, 0) = 0`,
		`mmap_pwrite(`, `flock(`, `fchownat(AT_FDCWD, "x/y/z", 1000, 2000, AT_SYMLINK_NOFOLLOW) = 0`, `"appended", O_WRONLY|O_CREAT|O_APPEND`,
	} {
		contains(t, text, want)
	}
	text, _ = m.run(t, m.iotape, "stat", "a.tape")
	contains(t, text, "recorded with fuse")
	text, _ = m.run(t, m.iotape, "print", "a.tape", "--processes", "--filter", "kind = described")
	contains(t, text, "/git\" in \"")
	text, _ = m.run(t, m.iotape, "print", "a.tape", "--filter", "exe glob git and op = openat")
	contains(t, text, "openat(")
	text, _ = m.run(t, m.iotape, "query", "a.tape", "SELECT count(*) > 100 AS enough FROM events WHERE op = 'pwrite64'")
	contains(t, text, "true")
	text, _ = m.run(t, m.iotape, "replay", "a.tape", "--into", "again", "--verify")
	contains(t, text, "all results agree")
	m.run(t, "diff", "-r", "--no-dereference", "--exclude", "p", "lower", "again"+m.path("lower"))
}

// TestMountEnds ends a mount in each way that there is.
func TestMountEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, how string
		inUse     bool
	}{
		{"umount", "umount mnt", false},
		{"fusermount3", "fusermount3 -u mnt", false},
		{"SIGINT", "kill -INT $PID", false},
		{"SIGTERM", "kill -TERM $PID", false},
		{"umount -l in use", "umount -l mnt", true},
		{"SIGINT in use", "kill -INT $PID", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := startMount(t, "--no-index")
			user := exec.Command("sh", "-ec", "exec 3>f; echo begin >&3; read go; echo end >&3")
			user.Dir = m.path("mnt")
			in, err := user.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := user.Start(); err != nil {
				t.Fatal(err)
			}
			content := func() string { b, _ := os.ReadFile(m.path("lower/f")); return string(b) }
			waitFor(t, "the first line", func() bool { return content() == "begin\n" })
			goOn := func() {
				in.Write([]byte("go\n"))
				if err := user.Wait(); err != nil {
					t.Error(err)
				}
			}
			if !tt.inUse {
				goOn()
			}
			m.run(t, "sh", "-ec", "PID="+fmt.Sprint(m.cmd.Process.Pid)+"; "+tt.how)
			if tt.inUse {
				waitFor(t, "the mountpoint to be free", func() bool { return !m.mounted() })
				goOn()
			}
			m.end(t)
			if got := content(); got != "begin\nend\n" {
				t.Errorf("below: %q", got)
			}
			text, _ := m.run(t, m.iotape, "print", "a.tape")
			contains(t, text, `"end\n"`)
		})
	}
}

// A tape can have what fits a filter, as with record.
func TestMountFilter(t *testing.T) {
	t.Parallel()
	m := startMount(t, "--filter", "path under / and op = pwrite64", "--no-index")
	m.sh(t, "echo one >f; mkdir d; echo two >d/g; cat f d/g; rm f")
	m.unmount(t, "mnt")
	m.end(t)
	text, _ := m.run(t, m.iotape, "print", "a.tape")
	contains(t, text, `"two\n"`)
	if strings.Contains(text, "pread64") || strings.Contains(text, "unlinkat") {
		t.Errorf("more than the filter picks:\n%s", text)
	}
	m.run(t, m.iotape, "replay", "a.tape", "--into", "again")
	if b, err := os.ReadFile(m.path("again") + m.path("lower/d/g")); err != nil || string(b) != "two\n" {
		t.Errorf("replayed: %q, %v", b, err)
	}
}

// A second signal ends the recording of a mount that somebody does not let go of.
func TestMountSecondSignal(t *testing.T) {
	t.Parallel()
	m := startMount(t, "--no-index")
	user := exec.Command("sleep", "1000")
	user.Dir = m.path("mnt")
	if err := user.Start(); err != nil {
		t.Fatal(err)
	}
	defer user.Wait()
	defer user.Process.Kill()
	m.sh(t, "echo x >f")
	m.cmd.Process.Signal(syscall.SIGINT)
	waitFor(t, "the word that it is in use", func() bool { return strings.Contains(m.said(), "mnt is in use") })
	m.cmd.Process.Signal(syscall.SIGINT)
	m.end(t)
}

// TestMountKilled kills iotape while a program writes: what the program was told is
// written is in the lower directory, the program gets an error and no hang, and the
// recording becomes a tape.
func TestMountKilled(t *testing.T) {
	testenv.Short(t, "it kills a program many times")
	t.Parallel()
	testenv.NeedProgram(t, "python3")
	for i := range kills {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := startMount(t)
			user := exec.Command("python3", "-c", `
import os, sys
i = 0
try:
    while True:
        d = "d%d" % (i // 100)
        if i % 100 == 0: os.mkdir(d)
        fd = os.open("%s/f%d" % (d, i), os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"%d\n" % i * 50); os.close(fd)
        os.rename("%s/f%d" % (d, i), "%s/g%d" % (d, i))
        i += 1
        if i == 200: print("going", flush=True)
except OSError as e:
    print(i, e.errno, flush=True)
`)
			user.Dir = m.path("mnt")
			var said bytes.Buffer
			user.Stdout = &said
			if err := user.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the program to write",
				func() bool { _, err := os.Stat(m.path("lower/d1/g199")); return err == nil })
			time.Sleep(time.Duration(3+i) * 70 * time.Millisecond) // what is not older than 100 ms may be lost
			m.cmd.Process.Kill()
			<-m.ended
			if err := user.Wait(); err != nil {
				t.Fatal(err)
			}
			var done, errno int
			_, last, _ := strings.Cut(said.String(), "\n")
			if n, err := fmt.Sscan(last, &done, &errno); n != 2 ||
				errno != int(syscall.ENOTCONN) && errno != int(syscall.ECONNABORTED) {
				t.Fatalf("the program says %q: %v", said.String(), err)
			}
			for k := range done {
				name := fmt.Sprintf("lower/d%d/g%d", k/100, k)
				if b, err := os.ReadFile(m.path(name)); err != nil ||
					string(b) != strings.Repeat(fmt.Sprintf("%d\n", k), 50) {
					t.Fatalf("%s, which was written: %d bytes, %v", name, len(b), err)
				}
			}
			if _, err := os.Stat(m.path("mnt")); !errors.Is(err, syscall.ENOTCONN) {
				t.Errorf("the dead mount: %v", err)
			}
			_, text, err := m.try(t, m.iotape, "mount", "lower", "mnt", "-o", "b.tape")
			if err == nil {
				t.Error("mounted over a dead mount")
			}
			contains(t, text, "a mount is there whose server has ended; take it away with umount mnt")
			m.unmount(t, "mnt")
			repaired(t, m.dir)
			printed, _ := m.run(t, m.iotape, "print", "a.tape")
			contains(t, printed, `"d1/g199"`)
		})
	}
}

// The tape must not be where it is recorded.
func TestMountTapeInside(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedFUSE(t)
	e := &env{iotape: testenv.Iotape(t), dir: t.TempDir()}
	e.run(t, "sh", "-ec", "mkdir -p lower/sub mnt; ln -s lower/sub alias")
	for _, tape := range []string{"mnt/a.tape", "lower/a.tape", "lower/sub/a.tape", "alias/a.tape",
		"mnt/../lower/a.tape"} {
		_, text, err := e.try(t, e.iotape, "mount", "lower", "mnt", "-o", tape)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 {
			t.Errorf("%s: %v", tape, err)
		}
		if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != 1 ||
			!strings.Contains(lines[0], "the recording would record itself") {
			t.Errorf("%s: %q", tape, text)
		}
	}
	if out, _ := e.run(t, "find", "lower", "mnt"); out != "lower\nlower/sub\nmnt\n" {
		t.Errorf("left behind:\n%s", out)
	}
}

// An ordinary user mounts his own directory, where he may.
func TestMountUser(t *testing.T) {
	t.Parallel()
	cred := testenv.NeedUser(t)
	testenv.NeedProgram(t, "fusermount3")
	f, err := os.Stat("/dev/fuse")
	if err != nil || cred != nil && f.Mode().Perm()&0o006 != 0o006 {
		t.Skip("/dev/fuse is not for ordinary users here")
	}
	m := &mount{env: &env{iotape: testenv.IotapeFor(t, cred), dir: testenv.UserDir(t, cred), cred: cred},
		ended: make(chan error, 1)}
	m.run(t, "sh", "-ec", `
mkdir lower mnt; "$0" mount lower mnt -o a.tape & sleep 1
cd mnt; echo one >f; ln f g; mkdir d; mv g d; cat d/g; umask 077; echo x >private; cd ..
fusermount3 -u mnt; wait`, m.iotape)
	m.run(t, m.iotape, "check", "a.tape")
	text, _ := m.run(t, m.iotape, "replay", "a.tape", "--into", "again", "--verify")
	contains(t, text, "all results agree")
}
