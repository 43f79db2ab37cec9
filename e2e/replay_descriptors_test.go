// SPDX-License-Identifier: Apache-2.0

package e2e

// descriptors are programs whose descriptors and working directories come, or stay, in ways that few do: further rows
// of TestReplayKinds.
var descriptors = []row{
	{name: "a working directory that was removed", run: python(`
os.makedirs('d/e/x'); put('d/f', 'f')
d, e = os.open('d', os.O_RDONLY), os.open('d/e', os.O_RDONLY)
os.rmdir('d/e/x'); os.rmdir('d/e'); os.fchdir(e)
os.chdir('/proc/self/cwd'); os.chdir('/proc/self/fd/%d' % e); os.chdir('.')
assert os.listdir('/proc/self/cwd') == []
fails(lambda: put('/proc/self/cwd/n', ''), lambda: put('n', ''), os.getcwd)
os.mkdir('/proc/self/fd/%d/e' % d); put('/proc/self/fd/%d/e/in' % d, 'another directory')
fails(lambda: os.stat('in'), lambda: put('n', ''))
put('../o', 'o'); os.chdir('..'); put('p', 'p')
os.mkdir('k'); os.chdir('k'); os.rmdir('/proc/%d/cwd/../k' % os.getpid())
os.chmod('/proc/self/cwd', 0o711); os.chdir('/proc/self/cwd/..')
put('g', 'g'); os.mkdir('h'); os.chdir('/proc/thread-self/cwd/h'); os.rename('../g', '/proc/self/cwd/g')
os.chdir('../..'); put('top', 't')
`)},
	{name: "links of what is open", run: python(`
def link(*arguments): return libc.linkat(*arguments)
os.mkfifo('p'); d = os.open('.', os.O_RDONLY)
f = libc.syscall(257, d, b'p', os.O_RDWR | os.O_NONBLOCK, 0)
assert f >= 0 and link(f, b'', d, b'q', 0x1000) == link(-100, b'/proc/self/fd/%d' % f, -100, b'r', 0x400) == 0
os.mknod('dev', 0o20600, os.makedev(1, 3)); n = os.open('dev', os.O_RDWR)
assert link(n, b'', d, b'dev2', 0x1000) == 0
os.symlink('p', 's'); s = os.open('s', os.O_PATH | os.O_NOFOLLOW)
assert link(s, b'', d, b's2', 0x1000) == 0
t = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o644); os.write(t, b'unnamed')
assert link(-100, b'/proc/thread-self/fd/%d' % t, -100, b'named', 0x400) == 0
r = libc.syscall(257, d, b'named', os.O_RDWR, 0); os.rename('named', 'again'); os.write(r, b'N')
assert link(r, b'', d, b'more', 0x1000) == 0
for name in b'named', b'again', b'more': libc.unlinkat(d, name, 0)
assert link(r, b'', d, b'gone', 0x1000) == -1 and link(-100, b'none', d, b'l', 0) == -1
`)},
	{name: "attributes of what is open", run: python(`
os.mkfifo('p'); os.mknod('dev', 0o20600, os.makedev(1, 3)); os.link('p', 'second')
for i, (name, n) in enumerate((('p', 'q'), ('dev', 'dev2'))):
    f = os.open(name, os.O_RDWR | os.O_NONBLOCK); link = '/proc/self/fd/%d' % f
    os.setxattr(name, 'trusted.a', b'1'); os.rename(name, n)
    os.fchmod(f, 0o640); os.fchown(f, 3 + i, -1); os.chown(link, -1, 4 + i)
    os.setxattr(f, 'trusted.b', b'2'); os.setxattr(link, 'trusted.c', b'3'); os.removexattr(f, 'trusted.a')
    os.utime(f, ns=(5, 6)); os.utime(link, (7, 8 + i))
    assert libc.fchownat(f, b'', -1, 5 + i, 0x1000) == 0
    os.chmod(link, 0o604)
os.unlink('q'); os.fchmod(f, 0o400)
`)},
	{name: "opened by handles", run: python(`
def handle(name):
    h, m = ctypes.create_string_buffer(struct.pack('I', 128), 136), ctypes.c_int()
    assert libc.name_to_handle_at(-100, name, h, ctypes.byref(m), 0) == 0
    return h
def opened(h, flags):
    f = libc.open_by_handle_at(d, h, flags)
    if f < 0: raise OSError(ctypes.get_errno())
    return f
d = os.open('.', os.O_RDONLY); os.mkdir('e'); put('f', 'file')
h, e = handle(b'f'), handle(b'e')
os.rename('f', 'e/g'); os.rename('e', 'k')
f = opened(h, os.O_RDWR | os.O_APPEND); os.write(f, b' appended')
os.mkdir('made', dir_fd=opened(e, os.O_RDONLY | os.O_DIRECTORY))
os.unlink('k/g')
g = opened(h, os.O_RDWR); os.write(g, b'no name'); assert os.pread(f, 100, 0) == b'no namepended'
os.close(f); os.close(opened(h, os.O_RDONLY)); os.close(g)
fails(lambda: opened(h, os.O_RDONLY))
put('after', 'x')
`)},
	{name: "descriptors in messages", run: python(`
import socket
put('f', '0123456789'); put('g', 'g' * 100)
a, b = socket.socketpair()
f, d, g = os.open('f', os.O_RDWR), os.open('.', os.O_RDONLY), os.open('g', os.O_RDWR | os.O_APPEND)
if os.fork() == 0:
    for x in f, d, g: os.close(x)
    null = [os.open('/dev/null', os.O_RDONLY) for i in range(7)]
    _, (f, d, g), _, _ = socket.recv_fds(b, 100, 3)
    os.write(f, b'child'); os.lseek(f, 2, 1); os.write(f, b'!'); os.ftruncate(f, 50)
    os.write(g, b'appended'); os.fchmod(g, 0o600); os.mkdir('made', dir_fd=d)
    socket.send_fds(b, [b'back'], [os.open('h', os.O_CREAT | os.O_RDWR, 0o644, dir_fd=d)])
    os._exit(0)
b.close(); socket.send_fds(a, [b'there'], [f, d, g]); os.close(g)
os.write(socket.recv_fds(a, 100, 1)[1][0], b'by the parent')
os.wait(); os.write(f, b'after')
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind('sock')
c = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); c.connect('sock')
for i in range(4):
    x = os.open('m%d' % i, os.O_CREAT | os.O_RDWR, 0o644); os.write(x, b'%d' % i)
    socket.send_fds(c, [b'%d' % i], [x, x]); os.close(x)
    os.rename('m%d' % i, 'n%d' % i)
os.unlink('n3')
for i in range(4):
    x, y = socket.recv_fds(s, 10, 4)[1]
    os.write(x, b'received'); os.close(x); os.write(y, b' twice')
x = os.open('last', os.O_CREAT | os.O_RDWR, 0o644)
socket.send_fds(c, [b'of these, two have no room'], [x, x, x])
for y in socket.recv_fds(s, 10, 1)[1]: os.write(y, b'some')
`)},
	{name: "descriptors of another process", run: python(`
import mmap
put('f', '0123456789')
(r, w), (r2, w2) = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    f, h, d = os.open('f', os.O_RDWR), os.open('h', os.O_CREAT | os.O_RDWR, 0o644), os.open('.', os.O_RDONLY)
    t = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o644)
    os.write(f, b'AB'); os.write(w, struct.pack('4i', f, h, d, t)); os.read(r2, 1)
    os.write(f, b'Z'); os._exit(0)
numbers = struct.unpack('4i', os.read(r, 16))
p = libc.syscall(434, pid, 0)
f, h, d, t = (libc.syscall(438, p, n, 0) for n in numbers)
assert min(f, h, d, t) >= 0
os.write(f, b'cd'); os.write(h, b'parent'); os.mkdir('made', dir_fd=d); os.ftruncate(h, 20); os.fchmod(h, 0o600)
os.write(t, b'unnamed'); assert libc.linkat(t, b'', -100, b'named', 0x1000) == 0
m = mmap.mmap(h, 20); m[10:14] = b'mapp'; m.close()
os.write(w2, b'x'); os.wait(); os.write(f, b'end')
`)},
}
