#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A Python script: reads, writes, seeks, appends, truncates, directories, links, attributes, copies.
#
# usage: python-rw.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$1"

prep() {
	head -c 200000 /dev/urandom >in
	mkdir -p old/sub
	echo one >old/one
	echo two >old/sub/two
	ln -s one old/link
}

run() {
	/usr/bin/python3 -B -S - <<'P'
import os, mmap, shutil

with open("in", "rb") as f, open("out", "wb") as o:
    while b := f.read(8192):
        o.write(b[::-1])
    f.seek(-100, os.SEEK_END)
    o.write(f.read(200))                      # short: only 100 are left
    assert f.read(1) == b""
with open("text", "w+") as f:
    for i in range(2000):
        f.write(f"line {i}\n")
    f.seek(0)
    assert sum(1 for _ in f) == 2000
for i in range(5):
    with open("text", "a") as f:
        f.write(f"appended {i}\n")
with open("out", "r+b") as f:
    f.seek(1000)
    f.write(b"patched")
    f.truncate(150000)
    f.seek(160000)
    f.write(b"behind a hole")
    f.flush()
    os.fsync(f.fileno())
os.truncate("out", 170000)

fd = os.open("raw", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
os.writev(fd, [b"a" * 10, b"", b"b" * 5000])
os.pwrite(fd, b"at", 7)
os.pwritev(fd, [b"x", b"y"], 9000)
buf = [bytearray(4), bytearray(100)]
assert os.preadv(fd, buf, 8998) == 4
os.lseek(fd, 0, os.SEEK_SET)
two = os.dup(fd)
assert os.read(two, 4) == b"aaaa" and os.lseek(fd, 0, os.SEEK_CUR) == 4
os.fdatasync(two)
os.close(two)
os.fchmod(fd, 0o600)
os.posix_fallocate(fd, 0, 20000)
os.sendfile(os.open("copy", os.O_WRONLY | os.O_CREAT, 0o644), fd, 0, 5010)
os.copy_file_range(fd, os.open("range", os.O_RDWR | os.O_CREAT, 0o644), 4000, 0)
os.close(fd)

os.makedirs("d/e/f")
os.mkdir("d/g", 0o700)
with open("d/e/x", "w") as f:
    f.write("x")
os.symlink("x", "d/e/sym")
os.link("d/e/x", "d/e/f/hard")
assert os.readlink("d/e/sym") == "x" and os.stat("d/e/x").st_nlink == 2
os.rename("d/e/f", "d/moved")
os.replace("copy", "d/copy")
os.chmod("d/copy", 0o604)
os.utime("d/copy", ns=(1_000_000_000_123_456_789, 1_111_111_111_987_654_321))
try:
    os.setxattr("d/copy", "user.a", b"one")
    os.setxattr("d/copy", "user.b", b"two" * 100)
    os.removexattr("d/copy", "user.a")
    assert os.listxattr("d/copy") == ["user.b"]
    assert os.getxattr("d/copy", "user.b") == b"two" * 100
except OSError as e:                          # a file system without attributes
    assert e.errno == 95, e
assert sorted(os.listdir("old")) == ["link", "one", "sub"]
shutil.copytree("old", "new", symlinks=True)
shutil.copy2("text", "new/text")
shutil.move("new/one", "new/sub/one")
shutil.rmtree("old")
os.rmdir("d/g")
for top, dirs, files in os.walk("."):
    for n in files:
        os.lstat(os.path.join(top, n))
here = os.open("d", os.O_RDONLY | os.O_DIRECTORY)
os.mkdir("at", dir_fd=here)
fd = os.open("at/file", os.O_WRONLY | os.O_CREAT, dir_fd=here)
os.write(fd, b"relative")
os.close(fd)
os.rename("at/file", "at/renamed", src_dir_fd=here, dst_dir_fd=here)
os.fchdir(here)
os.unlink("e/sym")
os.chdir("..")
fd = os.open("gone", os.O_RDWR | os.O_CREAT)
os.unlink("gone")                             # still open: written and read without a name
os.write(fd, b"nameless")
assert os.pread(fd, 20, 0) == b"nameless"
P
}

"$2"
