// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/testenv"
)

// moreKinds are further rows of TestReplayKinds.
var moreKinds = []row{
	{name: "a bind mount by open_tree", run: python(`
os.mkdir('src'); os.mkdir('dst'); put('src/a', 'a')
tree = libc.syscall(428, -100, b'src', 1)
assert tree >= 0
os.close(os.open('through', os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=tree))
assert libc.syscall(429, tree, b'', -100, b'dst', 4) == 0
os.close(tree); put('dst/b', 'b'); os.rename('dst/a', 'dst/c')
assert libc.mount(b'none', b'dst', None, 32 | 1 | 4096, None) == 0
fails(lambda: put('dst/no', 'no'))
subprocess.check_call(['umount', 'dst'])
put('dst/left', 'l')
`)},
	{name: "outside the root directory", run: python(`
os.mkdir('root'); put('root/f', 'f')
top, here = os.open('.', os.O_RDONLY), os.getcwd()
os.chroot('root')
os.fchdir(top)
room = ctypes.create_string_buffer(4096)
assert libc.syscall(79, room, 4096) > 0 and room.value == b'(unreachable)' + here.encode()
os.mkdir('n' * 90); os.chdir('n' * 90); assert libc.syscall(79, room, 4096) > 100; os.chdir('..')
put('outside', 'o'); os.mkdir('d'); put('../' + os.path.basename(here) + '/d/x', 'x'); os.link('root/f', 'd/link')
up = os.open('../' * 20, os.O_RDONLY)
put('/in', 'i'); os.stat(here[1:] + '/outside', dir_fd=up)
os.mkdir(here[1:] + '/d/e', dir_fd=up); os.listdir(os.open(here[1:], os.O_RDONLY, dir_fd=up))
`)},
	{name: "a directory that was renamed while open", run: python(`
os.makedirs('a/b')
d = os.open('a/b', os.O_RDONLY)
os.chdir('a')
os.rename('../a', '../z'); put('here', '1')
os.close(os.open('in', os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=d))
os.rename('b', '../top'); put('/proc/self/fd/%d/x' % d, 'x')
os.rename('/proc/self/fd/%d/x' % d, 'moved'); assert libc.link(b'moved', b'/proc/self/fd/%d/x' % d) == 0
assert libc.rename(b'here', b'/proc/self/fd/%d/y' % d) == 0
os.getcwd(); os.listdir(d); os.listdir('../top')
`)},
}

// TestReplayListsOnBtrfs replays a listing that does not have what was made after the directory was
// opened: btrfs has only the names of that time.
func TestReplayListsOnBtrfs(t *testing.T) {
	testenv.Short(t, "records and replays programs on a file system")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	e := &env{iotape: testenv.Iotape(t), dir: testenv.MountImage(t, "btrfs", 512)}
	for _, r := range moreKinds {
		r.snapshot = true
		t.Run(r.name, func(t *testing.T) { r.onceInto(t, e) })
	}
}

// TestReplayOverlay replays what was done below an overlay that the program mounted. What the kernel made in the upper
// directory is not made, and not compared: the verdict is that of the rest, and names the directories.
func TestReplayOverlay(t *testing.T) {
	testenv.Short(t, "records a program")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	e := newEnv(t, testenv.Iotape(t), "", nil)
	const below = `
os.listdir('m'); open('m/a').read()
put('m/a', 'new'); os.unlink('m/b'); os.mkdir('m/d'); put('m/d/x', 'x'); os.rename('m/d', 'm/e'); os.stat('m/e/x')
os.setxattr('m/e/x', 'user.x', b'1'); os.chmod('m/e', 0o700); os.listdir('m'); open('m/e/x').read()
`
	for _, c := range []struct {
		name, mount, then string
		dirs              []string // named
	}{
		{"upper directory", `assert libc.mount(b'o', b'm', b'overlay', 0, b'upperdir=up,workdir=work,lowerdir=low:low2') == 0`,
			below + `libc.umount2(b'm', 2); os.stat('up/a'); os.lstat('up/b'); os.listdir('up'); open('up/e/x').read()
put('low/a', 'other'); os.listdir('m')`, []string{"up", "work"}},
		{"upper directory by fsconfig", `
fs = libc.syscall(430, b'overlay', 0)
assert fs >= 0
for key, value in (b'lowerdir', b'low:low2'), (b'upperdir', os.fsencode(os.path.abspath('up'))), (b'workdir', b'work'):
    assert libc.syscall(431, fs, 1, key, value, 0) == 0
assert libc.syscall(431, fs, 6, None, None, 0) == 0
mnt = libc.syscall(432, fs, 0, 0)
assert mnt >= 0 and libc.syscall(429, mnt, b'', -100, b'm', 4) == 0
os.close(fs); os.close(mnt)`, below + `libc.umount2(b'm', 2)`, []string{"up", "work"}},
		{"within a tmpfs", `assert libc.mount(b't', b't', b'tmpfs', 0, None) == 0
os.mkdir('t/up'); os.mkdir('t/work')
assert libc.mount(b'o', b'm', b'overlay', 0, b'upperdir=t/up,workdir=t/work,lowerdir=low:low2') == 0`,
			below + `os.listdir('t/up'); libc.umount2(b'm', 2); libc.umount2(b't', 2)`, []string{"1/up", "1/work"}},
		{"read-only", `assert libc.mount(b'o', b'm', b'overlay', 0, b'lowerdir=low:low2') == 0`,
			`os.listdir('m'); open('m/a').read(); libc.umount2(b'm', 2)`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := row{name: c.name, snapshot: true, run: python(`
for d in 'low', 'low2', 'up', 'work', 'm', 't': os.mkdir(d)
put('low/a', 'a'); put('low/b', 'b')
` + c.mount + "\n" + c.then)}
			tape := filepath.Join(t.TempDir(), "x.tape")
			r.record(t, e, tape)
			v, stderr := e.replay(t, tape, "--verify", "--into", filepath.Join(t.TempDir(), "again"))
			if v == nil {
				t.Fatal(stderr)
			}
			if !v.OK || len(v.Omitted) > 0 || len(v.OverlayDirs) != len(c.dirs) {
				t.Errorf("ok %v, omitted %v, directories of overlays %v, want ok and %v\n%s", v.OK, v.Omitted,
					v.OverlayDirs, c.dirs, stderr)
			}
			for i, dir := range v.OverlayDirs {
				if i < len(c.dirs) && !strings.HasSuffix(dir, "/"+c.dirs[i]) {
					t.Errorf("directories of overlays %v, want %v", v.OverlayDirs, c.dirs)
				}
			}
		})
	}
}

// TestReplayOverlayBefore records what is done in an overlay that was mounted before the recording, as the root
// directory of a container is: from inside (chroot in a mount namespace) and from outside. A file has one name, the
// host's, beside the one inside, and a replay agrees.
func TestReplayOverlayBefore(t *testing.T) {
	testenv.Short(t, "records a program with every back end")
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "python3")
	forBackends(t, func(t *testing.T, backend string) {
		e := newEnv(t, testenv.Iotape(t), "", nil)
		for _, dir := range []string{"up", "low/d", "work", "m"} {
			if err := os.MkdirAll(filepath.Join(e.dir, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(e.dir, "low/d/a"), []byte("a"), 0o644); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(e.dir, "m")
		options := "lowerdir=" + filepath.Join(e.dir, "low") + ",upperdir=" + filepath.Join(e.dir, "up") +
			",workdir=" + filepath.Join(e.dir, "work")
		if err := unix.Mount("o", at, "overlay", 0, options); err != nil {
			t.Skipf("mount an overlay: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
		const program = `import ctypes, os, sys
m = sys.argv[1]
if os.fork() == 0:
    ctypes.CDLL(None).unshare(0x20000)
    os.chroot(m); os.chdir("/d")
    f = os.open("a", os.O_RDWR|os.O_APPEND); os.write(f, b"inside"); os.rename("a", "/b"); os.mkdir("/e")
    os._exit(0)
assert os.wait()[1] == 0
f = os.open(m + "/b", os.O_RDWR); os.read(f, 100); os.write(f, b"outside"); os.rmdir(m + "/e")
`
		_, stderr, status := e.records(t, []string{"--backend", backend}, "python3", "-I", "-S", "-c", program, at)
		if status != 0 {
			t.Fatalf("status %d\n%s", status, stderr)
		}
		out := e.says(t, "print", "a.tape", "--filter", "op = write and path = "+quoted(filepath.Join(at, "b")))
		if strings.Count(out, "write(") != 1 {
			t.Errorf("want the write outside by the name m/b:\n%s", out)
		}
		out = e.says(t, "print", "a.tape", "--filter", "op = write and path under "+quoted(at))
		if strings.Count(out, "write(") != 2 {
			t.Errorf("want both writes below m:\n%s", out)
		}
		if out, stderr, err := e.try(t, e.iotape, "replay", "a.tape", "--into", "again", "--verify"); err != nil {
			t.Errorf("replay: %v\n%s%s", err, out, stderr)
		}
	})
}
