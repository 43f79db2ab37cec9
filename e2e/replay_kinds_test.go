// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// python returns a script of bash that runs a program in Python.
func python(program string) string {
	return "exec python3 -S - <<'END'\nimport ctypes, os, resource, signal, struct, subprocess\n" +
		"libc = ctypes.CDLL(None, use_errno=True)\n" +
		"def fails(*calls):\n" +
		"    for c in calls:\n" +
		"        try: c()\n" +
		"        except OSError: continue\n" +
		"        raise SystemExit('a call succeeded that was to fail')\n" +
		"def put(name, text):\n" +
		"    with open(name, 'w') as f: f.write(text)\n" +
		"libc.mmap.restype = ctypes.c_void_p\n" +
		"libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n" +
		"def ending():\n" + // 4096 bytes of memory with none behind them
		"    p = libc.mmap(None, 8192, 3, 0x22, -1, 0)\n" +
		"    libc.munmap(ctypes.c_void_p(p + 4096), 4096)\n" +
		"    ctypes.memset(p, 66, 4096)\n" +
		"    return p\n" +
		program + "\nEND\n"
}

// shortReads reads less than it asks for because its memory ends, and not the file.
const shortReads = `
p = ending()
put('f', 'x' * 9000)
f = os.open('f', os.O_RDWR)
class Part(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
parts = (Part * 2)((p, 100), (p + 4090, 50))
for i in range(3): # the first calls of a place are recorded by another way than the later ones
    os.lseek(f, 0, 0)
    assert libc.read(f, ctypes.c_void_p(p + 4090), 50) == 6
    assert libc.pread(f, ctypes.c_void_p(p + 4000), 200, ctypes.c_long(7)) == 96
    assert libc.readv(f, parts, 2) == 106
os.write(f, b'end')
`

// refusals are programs of which calls fail, or do less than they were asked, for what their
// machine is like: a replay does not do more than they did.
var refusals = []row{
	{name: "writes up to a limit", run: python(`
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, -1))
f = os.open('f', os.O_RDWR | os.O_CREAT, 0o644)
assert os.write(f, b'a' * 4000) + os.write(f, b'b' * 4000) == 5000
fails(lambda: os.write(f, b'c'), lambda: os.ftruncate(f, 6000), lambda: os.posix_fallocate(f, 0, 9000))
v = os.open('v', os.O_RDWR | os.O_CREAT, 0o644)
assert os.writev(v, [b'd' * 3000, b'e' * 3000]) == 5000
assert os.pwritev(v, [b'f' * 100, b'g' * 100], 4900, 0) == 100
assert os.pwritev(v, [b'f' * 100, b'g' * 100], 4850, os.RWF_DSYNC) == 150
s = os.open('s', os.O_RDWR | os.O_CREAT, 0o644)
os.write(s, b'h' * 4000)
assert os.sendfile(s, f, 0, 5000) == 1000
c = os.open('c', os.O_RDWR | os.O_CREAT, 0o644)
os.pwrite(c, b'i' * 10, 4000)
assert os.copy_file_range(f, c, 5000, 0, 4000) == 1000
r, w = os.pipe()
os.write(w, b'j' * 3000)
p = os.open('p', os.O_RDWR | os.O_CREAT, 0o644)
os.write(p, b'k' * 4000)
assert os.splice(r, p, 3000) == 1000
`)},
	{name: "sizes that no memory has", run: python(`
put('f', 'x' * 90000)
os.setxattr('f', 'user.a', b'value')
f = os.open('f', os.O_RDWR)
b = ctypes.create_string_buffer(1 << 20)
for size in -1, 1 << 62, 5 << 30:
    n = ctypes.c_size_t(size)
    assert libc.syscall(79, b, n) > 0
    assert libc.syscall(191, b'f', b'user.a', b, n) == 5
    assert libc.syscall(194, b'f', b, n) >= 7
    for call in (0, 1, 17, 18): # read, write, pread64, pwrite64
        libc.syscall(call, f, b, n, 0)
    libc.syscall(89, b'/proc/self/cwd', b, n)
    libc.syscall(285, f, 0, 0, n); libc.syscall(77, f, n); libc.syscall(326, f, 0, f, 0, n, 0)
    os.lseek(f, 0, 0)
    os.ftruncate(f, 90000)
`)},
	{name: "writes of memory that ends", run: python(`
p = ending()
f = os.open('f', os.O_RDWR | os.O_CREAT, 0o644)
assert libc.write(f, ctypes.c_void_p(p + 4000), 200) == 96
assert libc.write(f, ctypes.c_void_p(p + 4096), 200) == -1
class Part(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
parts = (Part * 3)((p + 4000, 50), (p + 4050, 100), (p, 100))
libc.writev(f, parts, 3)
os.write(f, b'end')
`)},
	{name: "reads into memory that ends", backend: "ebpf", run: python(shortReads)},
	{name: "reads into memory that ends, in the process", backend: "interpose", run: python(shortReads)},
	{name: "refused by landlock", run: python(`
put('after', 'x' * 10)
os.mkdir('d')
rules = libc.syscall(444, struct.pack('Q', 2 | 16 | 32 | 128 | 256), 8, 0)
libc.prctl(38, 1, 0, 0, 0)
assert rules >= 0 and libc.syscall(446, rules, 0) == 0
fails(lambda: os.open('after', os.O_WRONLY | os.O_TRUNC), lambda: os.open('new', os.O_WRONLY | os.O_CREAT),
      lambda: os.unlink('after'), lambda: os.rmdir('d'), lambda: os.mkdir('e'))
`)},
	{name: "root without capabilities", run: python(`
put('f', 'x' * 10)
os.chmod('f', 0o600); os.chown('f', 5, 5)
os.mkdir('d'); os.chmod('d', 0o700); os.chown('d', 5, 5)
assert libc.syscall(126, struct.pack('Ii', 0x20080522, 0), bytes(24)) == 0
fails(lambda: os.open('f', os.O_WRONLY | os.O_TRUNC), lambda: os.open('d/x', os.O_CREAT | os.O_WRONLY),
      lambda: os.chmod('f', 0o777), lambda: os.chown('f', 0, 0), lambda: os.mknod('n', 0o20666, 0x103))
`)},
	{name: "arguments that are invalid", run: python(`
put('f', 'x' * 10)
os.mkdir('d'); os.mkdir('d/e')
f = os.open('f', os.O_RDWR)
fails(lambda: os.ftruncate(f, -1), lambda: os.rename('d', 'd/e/f'), lambda: os.readlink('f'))
assert libc.renameat2(-100, b'f', -100, b'g', 1 | 2) == -1
assert libc.linkat(-100, b'f', -100, b'g', 0x40) == -1
assert libc.unlinkat(-100, b'f', 0x40) == -1
assert libc.fallocate(f, 0x1000, ctypes.c_long(0), ctypes.c_long(100)) == -1
fails(lambda: os.link('d', 'h'))
`)},
}

// ioctls are programs that change files by ioctl.
var ioctls = []row{
	{name: "space by ioctl", run: python(`
import fcntl
f = os.open('f', os.O_RDWR | os.O_CREAT, 0o644)
os.write(f, b'A' * 20000)
def space(command, whence, start, length):
    fcntl.ioctl(f, command, struct.pack('hhxxxxqqiI16x', 0, whence, start, length, 0, 0))
space(0x4030582b, 0, 4096, 8192)
space(0x40305829, 2, -1000, 500)
os.lseek(f, 100, 0)
space(0x40305829, 1, 10, 50)
space(0x40305828, 0, 20000, 4096)
try: space(0x40305839, 0, 15000, 100)
except OSError: pass
`)},
}

// names are programs that reach files in ways that few do.
var names = []row{
	{name: "file handles", run: python(`
def handle(name):
    h = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
    assert libc.syscall(303, -100, name, h, ctypes.byref(ctypes.c_int()), 0) == 0
    return h
top = os.open('.', os.O_RDONLY)
def opened(h, flags):
    fd = libc.syscall(304, top, h, flags)
    assert fd >= 0
    return fd
os.mkdir('d'); os.mkdir('e'); put('f', 'content')
d, f = handle(b'd'), handle(b'f')
os.rename('d', 'e/moved'); os.rename('f', 'g')
os.close(os.open('in', os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=opened(d, os.O_RDONLY | os.O_DIRECTORY)))
w = opened(f, os.O_RDWR | os.O_APPEND)
os.write(w, b' through a handle'); os.fchmod(w, 0o600)
`)},
	{name: "names in proc", run: python(`
os.mkdir('d')
d = os.open('d', os.O_RDONLY)
os.mkdir('/proc/self/fd/%d/sub' % d); put('/proc/thread-self/fd/%d/file' % d, 'a')
os.chdir('d')
os.mkdir('/proc/self/cwd/sub2'); put('/proc/self/cwd/file2', 'b'); os.symlink('t', '/proc/%d/cwd/link' % os.getpid())
os.rename('/proc/self/cwd/sub2', '/proc/self/root' + os.getcwd() + '/sub3')
`)},
	{name: "names that leave dev and proc", run: python(`
here = os.getcwd()
os.stat('/dev/..'); os.stat('/sys/../proc/..')
put('/dev/..' + here + '/a', 'a'); os.mkdir('/proc/../' + here + '/d'); os.rename('/dev/shm/../..' + here + '/a', '/sys/..' + here + '/d/b')
try: os.stat('/dev/../nothing')
except FileNotFoundError: pass
`)},
	{name: "a mapping of O_DIRECT", backend: "ebpf", run: python(`
import mmap
f = os.open('f', os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
os.ftruncate(f, 20000)
m = mmap.mmap(f, 20000)
m[5:12] = b'through'; m[9000:9003] = b'a m'; m[19990:19999] = b'apping to'
m.flush()
m[100:103] = b'end'
`)},
	{name: "names within a directory", run: python(`
os.mkdir('d'); os.mkdir('d/e'); put('d/f', 'f'); os.symlink('/f', 'd/abs'); os.symlink('e/../f', 'd/link')
d = os.open('d', os.O_RDONLY)
beneath, in_root, cached = 8, 16, 32
def opened(name, flags, resolve):
    return libc.syscall(437, d, name, struct.pack('QQQ', flags, 0o644 if flags & os.O_CREAT else 0, resolve), 24)
for name, resolve in ((b'/f', in_root), (b'abs', in_root), (b'../../f', in_root), (b'link', beneath), (b'f', cached)):
    fd = opened(name, os.O_RDONLY, resolve)
    assert fd >= 0 and os.read(fd, 5) == b'f'
assert opened(b'none', os.O_RDONLY, cached) == opened(b'e/none', os.O_RDONLY, cached) == -1
assert opened(b'/f', os.O_RDONLY, beneath) == opened(b'../d/f', os.O_RDONLY, beneath) == -1
os.write(opened(b'/new', os.O_CREAT | os.O_WRONLY, in_root), b'in the root')
os.write(opened(b'/e/../../e/n', os.O_CREAT | os.O_WRONLY, in_root), b'n')
`)},
	{name: "stores beside writes of one mapped file", backend: "ebpf", run: python(`
import mmap
f = os.open('f', os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(f, 65536)
m = mmap.mmap(f, 65536)
a = os.open('f', os.O_WRONLY | os.O_APPEND | os.O_DSYNC)
g = os.open('g', os.O_RDWR | os.O_CREAT, 0o644)
for i in range(60):
    m[i * 1000:i * 1000 + 5] = b'store'
    os.write(a, b'%03d' % i * 20)
    libc.fallocate(f, 3, ctypes.c_long(i * 700), ctypes.c_long(300))
    os.pwrite(f, b'written', i * 900)
    os.pread(f, 9000, i * 500)
    os.copy_file_range(f, g, 3000, i * 1000, i * 800)
assert os.fstat(f).st_size == 65536 + 60 * 60
`)},
	{name: "attributes of names at a directory", run: python(`
os.mkdir('d'); put('d/f', 'x'); put('d/g', 'y')
d = os.open('d', os.O_RDONLY)
value = ctypes.create_string_buffer(b'value', 5)
def at(call, name, attribute, flags=0): # struct xattr_args
    args = struct.pack('QII', ctypes.addressof(value), 5, flags)
    return libc.syscall(call, d, name, 0, attribute, args, len(args))
if at(463, b'f', b'user.a') == 0: # setxattrat: Linux 6.13
    assert at(463, b'f', b'user.a', 1) == -1 and ctypes.get_errno() == 17
    assert at(463, b'g', b'user.b') == 0 and at(464, b'g', b'user.b') == 5
    assert libc.syscall(466, d, b'g', 0, b'user.b') == 0
    assert at(464, b'g', b'user.b') == -1
`)},
	{name: "whiteouts", run: python(`
put('a', 'a'); put('b', 'b'); os.mkdir('d'); put('d/x', 'x')
def moved(old, new, flags=4): return libc.renameat2(-100, old, -100, new, flags) == 0
assert moved(b'a', b'w') and moved(b'd', b'e', 5)
os.lstat('a'); os.listdir('.'); fails(lambda: os.mkdir('d'), lambda: os.listdir('d'))
os.unlink('a'); put('a', 'new')
assert moved(b'b', b'a') and not moved(b'a', b'e', 5)
os.rename('b', 'c'); os.listdir('.')
`)},
	{name: "an absolute name with a directory", run: python(`
os.mkdir('d')
p = os.open('d', os.O_RDONLY)
r, w = os.pipe()
here = os.getcwd()
for i, base in enumerate((p, r, 999)):
    libc.mkdirat(base, ('%s/d%d' % (here, i)).encode(), 0o755)
    os.close(libc.openat(base, ('%s/f%d' % (here, i)).encode(), os.O_CREAT | os.O_WRONLY, 0o644))
    libc.renameat(base, ('%s/f%d' % (here, i)).encode(), base, ('%s/g%d' % (here, i)).encode())
`)},
}

// mounts are programs that mount file systems, which a replay does not.
var mounts = []row{
	{name: "a bind mount", run: python(`
os.mkdir('low'); put('low/b', 'b'); os.mkdir('bind')
subprocess.check_call(['mount', '--bind', 'low', 'bind'])
put('bind/new', 'n'); os.rename('bind/b', 'bind/c')
subprocess.check_call(['umount', 'bind'])
`)},
	{name: "a tmpfs that is gone", run: python(`
os.mkdir('m'); put('m/hidden', 'h')
subprocess.check_call(['mount', '-t', 'tmpfs', '-o', 'size=64k', 't', 'm'])
fails(lambda: os.stat('m/hidden'))
here = os.getcwd()
put('m/x', 'x'); os.listdir('m'); os.stat('m'); os.chdir('m'); os.mkdir('d'); put('../outside', 'o'); os.getcwd()
f = os.open('d/full', os.O_WRONLY | os.O_CREAT)
def fill():
    while True: os.write(f, b'x' * 10000)
fails(fill, lambda: os.rename('x', '../x'))
os.symlink(here + '/m/x', '../link'); open('../link').close()
put('../copy', open('d/full').read())
os.close(f); os.chdir('..')
subprocess.check_call(['umount', 'm'])
os.listdir('m')
`)},
	{name: "a tmpfs of a namespace", run: python(`
os.mkdir('m'); put('m/a', 'outside')
if os.fork() == 0:
    assert libc.unshare(0x20000) == 0
    subprocess.check_call(['mount', '--make-rprivate', '/'])
    subprocess.check_call(['mount', '-t', 'tmpfs', 't', 'm'])
    put('m/a', 'inside'); put('m/b', 'inside'); put('c', 'inside')
    os._exit(0)
os.wait()
put('m/d', open('m/a').read() + open('c').read())
`)},
}

// sparse are programs with files that are longer than what a test could read.
var sparse = []row{
	{name: "a sparse file", prep: python(`
f = os.open('before', os.O_RDWR | os.O_CREAT, 0o644)
os.truncate(f, 1 << 40)
os.pwrite(f, b'x', 5000000000)
`), run: python(`
f = os.open('f', os.O_RDWR | os.O_CREAT, 0o644)
os.truncate(f, 1 << 40)
os.pwrite(f, b'ab', 7000000000)
g = os.open('before', os.O_RDWR)
os.pwrite(g, os.pread(g, 1, 5000000000), 1 << 39)
`)},
}

// listings are programs that list directories in ways that few do.
var listings = []row{
	{name: "getdents after the end", run: python(`
os.mkdir('x'); put('x/f', '')
d = os.open('x', os.O_RDONLY)
room = ctypes.create_string_buffer(32768)
sizes = [libc.syscall(217, d, room, 32768) for i in range(3)]
assert sizes[0] > 0 and sizes[1:] == [0, 0]
os.unlink('x/f'); put('x/g', '')
libc.syscall(217, d, room, 32768)
os.lseek(d, 0, 0)
assert libc.syscall(217, d, room, 32768) > 0
`)},
	{name: "directory positions", run: python(`
for i in range(40): put('f%d' % i, '')
d = os.open('.', os.O_RDONLY)
room = ctypes.create_string_buffer(300)
assert libc.syscall(217, d, room, 300) > 0
at = os.lseek(d, 0, 1)
assert libc.syscall(217, d, room, 300) > 0
os.lseek(d, at, 0)
while libc.syscall(217, d, room, 300) > 0: pass
os.lseek(d, 0, 0)
while libc.syscall(217, d, room, 300) > 0: pass
`)},
	{name: "many names that change while a directory is listed", run: python(`
os.mkdir('d')
for i in range(6000): put('d/a-name-of-some-length-%d' % i, '')
for i, e in enumerate(os.scandir('d')):
    if i % 3 == 0: os.unlink(e.path)
    elif i % 5 == 0: os.rename(e.path, e.path + '.renamed')
`)},
	{name: "links to devices", run: python(`
os.symlink('/dev/null', 'log'); put('log', 'x')
os.symlink('/proc/self/mounts', 'b'); os.symlink('/sys/x', 'c'); os.rename('b', 'd')
os.symlink('/proc/version', 'e'); open('e').close(); os.lstat('e'); os.listdir('.'); os.unlink('e')
os.symlink('/dev/null', 'again'); put('again', 'x'); os.unlink('again'); put('again', 'a file')
`)},
}

// someFileSystems returns two file systems, or all with IOTAPE_REPEAT above 1.
func someFileSystems(t *testing.T) []string {
	if repeat(t) > 1 {
		return fileSystems
	}
	return []string{"ext4", "tmpfs"}
}

// TestReplayKinds records small programs, each of one kind of call that replays got wrong, and
// replays them: on two file systems, with IOTAPE_REPEAT above 1 on all, and without eBPF.
func TestReplayKinds(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "records and replays programs on several file systems")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	iotape := testenv.Iotape(t)
	on := someFileSystems(t)
	dirs := map[string]string{}
	for _, fs := range on {
		dirs[fs] = testenv.MountImage(t, fs, 512)
	}
	for _, r := range slices.Concat(refusals, ioctls, names, mounts, sparse, listings, moreKinds,
		descriptors, stored) {
		r.snapshot = true
		for _, fs := range on {
			t.Run(r.name+"/"+fs, func(t *testing.T) { r.onceInto(t, &env{iotape: iotape, dir: dirs[fs]}) })
		}
		if r.backend != "" {
			continue // others do not know the size of a file at each read
		}
		for _, r.backend = range []string{"interpose", "ptrace"} {
			t.Run(r.name+"/"+r.backend, func(t *testing.T) { r.onceInto(t, &env{iotape: iotape, dir: dirs[on[0]]}) })
		}
	}
}

// onceInto records a row and replays it beside, once.
func (r *row) onceInto(t *testing.T, e *env) {
	tape := filepath.Join(t.TempDir(), "x.tape")
	want := r.record(t, e, tape)
	r.keep(t, "", tape)
	r.replay(t, t, e, tape, into(t, filepath.Join(e.dir, "again")), "overlap", want)
}

// TestReplayOmits holds a replay to say what it left out: calls on a file that the program opened
// by a handle of before the recording.
func TestReplayOmits(t *testing.T) {
	testenv.Short(t, "records a program")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	e := newEnv(t, testenv.Iotape(t), "", nil)
	r := row{name: "handles of before", snapshot: true, prep: python(`
os.mkdir('d'); put('f', 'content')
with open('handles', 'wb') as out:
    for name in (b'd', b'f'):
        h = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
        assert libc.syscall(303, -100, name, h, ctypes.byref(ctypes.c_int()), 0) == 0
        out.write(h.raw[:136])
`), run: python(`
with open('handles', 'rb') as f: handles = f.read()
top = os.open('.', os.O_RDONLY)
d = libc.syscall(304, top, handles[:136], os.O_RDONLY | os.O_DIRECTORY)
f = libc.syscall(304, top, handles[136:], os.O_RDWR)
assert d >= 0 and f >= 0
os.close(os.open('in', os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=d))
os.write(f, b'new'); os.write(f, b'er'); os.read(f, 1); os.lseek(f, 0, 0)
`)}
	tape := filepath.Join(e.dir, "x.tape")
	r.record(t, e, tape)
	v, stderr := e.replay(t, tape, "--into", filepath.Join(e.dir, "again"))
	if v == nil {
		t.Fatal(stderr)
	}
	got := map[string]uint64{}
	for _, o := range v.Omitted {
		got[o.Op] = o.Count
	}
	if want := map[string]uint64{"openat": 1, "write": 2}; v.OK || !maps.Equal(got, want) {
		t.Errorf("ok %v, omitted %v, want not ok and %v", v.OK, got, want)
	}
}
