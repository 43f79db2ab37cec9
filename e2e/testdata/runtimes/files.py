# SPDX-License-Identifier: Apache-2.0
# Uses the file API of Python's run-time in the working directory.
import asyncio, dbm.dumb, fcntl, gzip, io, json, mmap, os, pathlib, pickle, shelve, shutil, sqlite3, stat, subprocess, sys, tarfile, tempfile, zipfile, concurrent.futures
from multiprocessing import shared_memory
P = pathlib.Path
top = P("py"); (top / "deep" / "er").mkdir(parents=True)
one = top / "deep" / "one"
one.write_bytes(bytes(range(256)) * 500)
with one.open("ab") as f: f.write(b"more")
d = P(tempfile.mkdtemp(dir=top))
shutil.copy2(one, d / "copy2"); shutil.copyfile(one, d / "copyfile"); shutil.copytree(top / "deep", d / "tree")
shutil.move(d / "copyfile", d / "moved"); shutil.make_archive(str(d / "arch"), "gztar", top / "deep"); shutil.unpack_archive(str(d / "arch.tar.gz"), d / "unpacked")
with zipfile.ZipFile(d / "z.zip", "w", zipfile.ZIP_DEFLATED) as z: z.write(one); z.writestr("x", "y" * 1000)
with zipfile.ZipFile(d / "z.zip", "a") as z: z.writestr("appended", "y")
with tarfile.open(d / "t.tar.xz", "w:xz") as t: t.add(top / "deep")
with gzip.open(d / "g.gz", "wt") as g: g.write("text" * 1000)
(d / "hard").hardlink_to(one); (d / "soft").symlink_to("../deep/one"); (d / "fifo").exists()
os.mkfifo(d / "fifo"); one.chmod(0o640); one.touch(); (d / "touched").touch(0o600); os.utime(one, ns=(10**18 + 5, 10**18 + 7)); (d / "soft").resolve(); list(top.rglob("*")); list(os.walk(top)); list(os.fwalk(top)); list(top.glob("**/o*"))
fd = os.open(d / "raw", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
os.write(fd, b"start"); os.pwrite(fd, b"far", 100000); os.writev(fd, [b"a", b"bc", b"d" * 5000]); os.pwritev(fd, [b"x", b"yz"], 5000); os.preadv(fd, [bytearray(3), bytearray(100)], 4)
os.posix_fallocate(fd, 200000, 5000); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED); os.lseek(fd, 0, os.SEEK_HOLE); os.lseek(fd, 50000, os.SEEK_DATA); os.ftruncate(fd, 150000); os.fsync(fd); os.fdatasync(fd)
os.lockf(fd, os.F_LOCK, 100); fcntl.flock(fd, fcntl.LOCK_EX); fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND); os.write(fd, b"appended")
src = os.open(one, os.O_RDONLY); dst = os.open(d / "sent", os.O_WRONLY | os.O_CREAT, 0o600)
os.sendfile(dst, src, 10, 1000); os.copy_file_range(src, dst, 3000, 50, 2000); r, w = os.pipe(); os.splice(src, w, 4000, offset_src=100); os.splice(r, dst, 4000); os.pread(src, 10, 127990)
dfd = os.open(d, os.O_RDONLY | os.O_DIRECTORY)
os.mkdir("sub", dir_fd=dfd); os.symlink("sub", "sublink", dir_fd=dfd); os.rename("sub", "sub2", src_dir_fd=dfd, dst_dir_fd=dfd); os.stat("sub2", dir_fd=dfd); os.link("raw", "rawlink", src_dir_fd=dfd, dst_dir_fd=dfd); os.unlink("rawlink", dir_fd=dfd); os.chmod("raw", 0o600, dir_fd=dfd); os.listdir(dfd)
os.fchdir(dfd); P("here").write_text("here"); os.replace("here", "there"); os.chdir("../..")
try: os.setxattr(one, "user.note", b"value"); os.listxattr(one); os.getxattr(one, "user.note"); os.removexattr(one, "user.note")
except OSError: pass
with tempfile.TemporaryFile(dir=d) as t: t.write(b"x" * 10000); t.seek(0); t.read()
with tempfile.NamedTemporaryFile(dir=d) as t: t.write(b"y"); t.flush()
with tempfile.SpooledTemporaryFile(100, dir=d) as t: t.write(b"z" * 1000)
with tempfile.TemporaryDirectory(dir=d) as t: (P(t) / "in").write_text("in")
with open(d / "mapped", "w+b") as f:
    f.truncate(1 << 16)
    with mmap.mmap(f.fileno(), 0) as m: m[5000:5005] = b"hello"; m.flush(); m.move(100, 5000, 5); m[60000] = 1
s = shared_memory.SharedMemory(create=True, size=10000); s.buf[:5] = b"share"; s.close(); s.unlink()
db = sqlite3.connect(d / "db"); db.execute("pragma journal_mode=wal"); db.execute("create table t(a, b)"); db.executemany("insert into t values(?, ?)", [(i, "x" * i) for i in range(500)]); db.commit(); db.execute("delete from t where a % 3"); db.commit(); db.execute("vacuum"); db.close()
with shelve.open(str(d / "shelf")) as sh: sh["a"] = [1, 2]; sh["b"] = "x" * 100
with dbm.dumb.open(str(d / "dumb"), "c") as k: k[b"a"] = b"b" * 100; del k[b"a"]
pickle.dump({"a": list(range(100))}, open(d / "pickle", "wb")); json.dump([1, 2], open(d / "json", "w")); print("x", file=open(d / "print", "w", buffering=1))
with io.FileIO(d / "fileio", "x") as f: f.write(b"x"); f.truncate(100)
with open(d / "r+", "w+") as f: f.write("abc" * 100); f.seek(5); f.write("Z"); f.seek(0); f.readline(); f.truncate(50)
subprocess.run("cat; echo err >&2", shell=True, stdin=open(one, "rb"), stdout=open(d / "out", "wb"), stderr=subprocess.STDOUT, check=True)
with concurrent.futures.ThreadPoolExecutor(4) as e: list(e.map(lambda i: (d / f"t{i}").write_text("x" * i * 500), range(12)))
async def run():
    p = await asyncio.create_subprocess_exec("sh", "-c", "echo from a child > %s/async; cat" % d, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE); await p.communicate(b"in")
asyncio.run(run())
pid = os.fork()
if pid == 0:
    os.write(dst, b"child"); os._exit(0)
os.waitpid(pid, 0); os.write(dst, b"parent")
fd2 = os.memfd_create("m"); os.write(fd2, b"memory"); os.sendfile(dst, fd2, 0, 6)
tmp = os.open(d, os.O_TMPFILE | os.O_RDWR, 0o600); os.write(tmp, b"nameless"); os.link(f"/proc/self/fd/{tmp}", d / "named", src_dir_fd=dfd, follow_symlinks=True)
for name in ("t1", "t3"): (d / name).unlink()
shutil.rmtree(d / "tree"); (d / "fifo").unlink()
os.truncate(d / "copy2", 77); old = os.umask(0o077); (d / "masked").write_text("m"); os.umask(old)
