// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// stored are programs that store to files through mappings, beside calls that change them: further rows of
// TestReplayKinds.
var stored = []row{
	{name: "what calls changed is stored back", run: python(`
import mmap
A, B, page = b'A' * 4096, b'B' * 4096, 4096
f, g = os.open('f', os.O_RDWR | os.O_CREAT, 0o644), os.open('g', os.O_RDWR | os.O_CREAT, 0o644)
os.write(f, A * 10); os.write(g, B)
m = mmap.mmap(f, 10 * page)
def back(i): m[i * page:(i + 1) * page] = A
other, (r, w) = os.open('f', os.O_WRONLY), os.pipe()
os.pwrite(f, B, 0); back(0)
libc.fallocate(f, 3, ctypes.c_long(page), ctypes.c_long(page)); back(1)
os.copy_file_range(g, f, page, 0, 3 * page); back(3)
os.write(w, B); os.splice(r, f, page, offset_dst=4 * page); back(4)
os.lseek(other, 5 * page, 0); os.write(other, B); back(5)
os.pwritev(other, [B[:100], B[:100]], 6 * page); back(6)
os.ftruncate(f, 7 * page); os.ftruncate(f, 8 * page); back(7)
os.truncate('f', 8 * page); os.truncate('f', 9 * page); back(8)
os.lseek(other, 2 * page, 0); os.sendfile(other, g, 0, page); back(2)
if os.fork() == 0: os.pwrite(f, B, 2 * page); os._exit(0)
os.wait(); back(2)
z = os.open('z', os.O_RDWR | os.O_CREAT, 0o644); os.ftruncate(z, 2 * page)
n = mmap.mmap(z, 2 * page); os.pwrite(z, B, page); n[page:] = bytes(page)
e = os.open('e', os.O_RDWR | os.O_CREAT, 0o644); os.write(e, A); o = mmap.mmap(e, page)
os.close(os.open('e', os.O_WRONLY | os.O_TRUNC)); os.ftruncate(e, page); o[:] = A
`)},
	{name: "a mapping of O_APPEND", run: python(`
import mmap
f = os.open('f', os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o444)
os.write(f, b'x' * 5000)
m = mmap.mmap(f, 5000)
m[100:105] = b'store'; m[4990:5000] = b'at the end'; m.flush(); os.write(f, b'appended'); m[0:5] = b'again'
assert os.fstat(f).st_size == 5008
`)},
	{name: "ranges that are moved below a mapping", run: python(`
import mmap
size = os.statvfs('.').f_bsize
f = os.open('f', os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(f, size * 16)
m = mmap.mmap(f, size * 16)
for i in range(16): m[i * size:i * size + 8] = b'block%03d' % i
def allocate(mode, at, n): libc.fallocate(f, mode, ctypes.c_long(at * size), ctypes.c_long(n * size)) # tmpfs refuses it
def store(at, text): m[at:at + len(text)] = text
allocate(8, 4, 2); store(size * 3, b'after'); allocate(32, 2, 1); store(size * 2, b'in it'); allocate(16, 6, 1)
allocate(3, 7, 1); store(size * 7 + 100, b'hole'); os.pwrite(f, b'p' * 50, 9 * size + 5); allocate(32, 1, 2)
store(size * 10, b'last'); m.flush(); store(size * 11, b'later'); allocate(8, 0, 1); store(0, b'first')
for k in range(10):
    store(k * size + k, b'st%04d' % k); allocate(8, k % 7, 1); store(3 * size + k * 7, b'mi%04d' % k)
    allocate(32, k % 5 + 1, 1); os.pwrite(f, b'w%03d' % k, size * k + 200)
`)},
}

// TestReplayClones replays what shares content between files, some of it stored through mappings, on the file systems
// that can.
func TestReplayClones(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "records and replays programs on two file systems")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	iotape := testenv.Iotape(t)
	r := row{name: "clones", snapshot: true, run: python(`
import fcntl, mmap
size = 4096
def new(name): return os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
def clone(to, *part): fcntl.ioctl(to, 0x4020940d, struct.pack('qQQQ', *part))
def same(source, off, n, to, at):
    b = bytearray(struct.pack('QQHHI', off, n, 1, 0, 0) + struct.pack('qQQiI', to, at, 0, 0, 0))
    fcntl.ioctl(source, 0xc0189436, b)
    return struct.unpack('qQQiI', b[24:])[3]
a, b, c, d, e = (new(n) for n in 'abcde')
for i in range(16): os.write(a, (b'%04d' % i) * (size // 4))
m = mmap.mmap(a, size * 16)
m[5:10] = b'store'; m[size * 8:size * 8 + 5] = b'eight'
fcntl.ioctl(b, 0x40049409, a)
os.pwrite(b, b'changed', 100)
n = mmap.mmap(b, size * 16)
n[size:size + 6] = b'mapped'; n[size * 15:size * 15 + 4] = b'late'; m[size * 9:size * 9 + 4] = b'nine'
clone(c, b, 0, size * 4, size); clone(c, a, size * 8, size * 2, size * 8); clone(c, a, size * 14, 0, size * 20)
clone(a, a, 0, size * 2, size * 4); m[size * 4 + 9:size * 4 + 13] = b'self'
clone(b, a, size * 2, size, size * 7); n[size * 7:size * 8] = (b'0007') * (size // 4)
os.write(d, b'z' * size * 4); os.write(e, b'z' * size * 4)
o = mmap.mmap(e, size * 4)
assert same(d, 0, size * 4, e, 0) == 0
o[3:6] = b'xyz'
assert same(d, 0, size * 4, e, 0) == 1 and same(d, size, size, e, size) == 0
o[size * 2:size * 2 + 3] = b'uvw'; os.pwrite(d, b'only d', size * 3)
`)}
	for _, fs := range []string{"xfs", "btrfs"} {
		e := &env{iotape: iotape, dir: testenv.MountImage(t, fs, 512)}
		for _, r.backend = range []string{"ebpf", "interpose", "ptrace"} {
			t.Run(fs+"/"+r.backend, func(t *testing.T) { r.onceInto(t, e) })
		}
	}
}

// randomCalls makes 1,500 calls on a few names, of which about half fail. %d is the seed.
const randomCalls = `
import mmap, random
r = random.Random(%d)
names = ['n%%d' %% i for i in range(12)] + ['d1', 'd2', 'd1/a', 'd2/b', 'd1/c']
os.mkdir('d1'); os.mkdir('d2')
open_files, mappings, size = [], [], 4096
def name(): return r.choice(names)
def some(): return r.choice(open_files)
def n(limit): return r.randrange(limit)
def opened():
    how = r.choice([0, os.O_TRUNC, os.O_EXCL, os.O_APPEND])
    open_files.append(os.open(name(), os.O_RDWR | os.O_CREAT | how, 0o644))
def closed(): os.close(open_files.pop(n(len(open_files))))
def stored():
    f = some()
    m = mmap.mmap(f, os.fstat(f).st_size)
    at = n(len(m)); m[at:at + 5] = b'MMAP!'[:len(m) - at]
    if n(2): mappings.append(m)
    else: m.close()
calls = [
    opened, opened, closed, stored, stored, lambda: mappings.pop(n(len(mappings))).close(),
    lambda: os.unlink(name()), lambda: os.rename(name(), name()), lambda: os.link(name(), name()),
    lambda: os.symlink(name(), name()), lambda: os.mkdir(name()), lambda: os.rmdir(name()), lambda: os.readlink(name()),
    lambda: libc.renameat2(-100, name().encode(), -100, name().encode(), r.choice([1, 2, 4])),
    lambda: os.truncate(name(), n(20000)), lambda: os.listdir(r.choice(['.', 'd1', 'd2'])),
    lambda: os.chmod(name(), r.choice([0o600, 0o755, 0o444])), lambda: (os.stat(name()), os.lstat(name())),
    lambda: os.setxattr(name(), 'user.%%d' %% n(3), b'v' * n(50)), lambda: os.write(some(), b'%%d' %% n(256) * n(3000)),
    lambda: os.pwrite(some(), b'%%d' %% n(256) * n(3000), n(30000)), lambda: os.ftruncate(some(), n(30000)),
    lambda: os.pread(some(), 5000, n(30000)), lambda: os.fsync(some()),
    lambda: libc.fallocate(some(), r.choice([0, 1, 3, 8, 16, 32]), ctypes.c_long(size * n(8)),
                           ctypes.c_long(size * (1 + n(3)))),
    lambda: os.copy_file_range(some(), some(), n(10000), n(20000), n(20000)),
]
for i in range(1500):
    try: r.choice(calls)()
    except (OSError, ValueError, IndexError): pass
`

// TestReplayRandomCalls replays programs that make random calls; IOTAPE_SEED is the first one's seed, IOTAPE_REPEAT how
// many there are of each back end and file system.
func TestReplayRandomCalls(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "records and replays programs on two file systems")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	iotape := testenv.Iotape(t)
	seed, err := strconv.Atoi(cmp.Or(os.Getenv("IOTAPE_SEED"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	on := someFileSystems(t)
	for _, fs := range on {
		e := &env{iotape: iotape, dir: testenv.MountImage(t, fs, 512)}
		for _, backend := range []string{"ebpf", "interpose", "ptrace"} {
			for range repeat(t) {
				program := python(fmt.Sprintf(randomCalls, seed))
				r := row{name: "random calls", backend: backend, snapshot: true, run: program}
				t.Run(fmt.Sprintf("%s/%s/%d", fs, backend, seed), func(t *testing.T) { r.onceInto(t, e) })
				seed++
			}
		}
	}
}
