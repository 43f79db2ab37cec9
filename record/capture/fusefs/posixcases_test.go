// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	rdwr   = unix.O_RDWR
	rdonly = unix.O_RDONLY
	wronly = unix.O_WRONLY
	creat  = unix.O_CREAT
	excl   = unix.O_EXCL
	trunc  = unix.O_TRUNC
)

// posixCases is the table. An exception is a sentence of docs/mount.md: the case differs.
var posixCases = []struct {
	name      string
	exception string
	do        func(x *posixRun)
}{
	{"open", "", func(x *posixRun) {
		x.open("no", rdonly, 0)
		fd := x.open("f", rdwr|creat|excl, 0o600)
		x.open("f", rdwr|creat|excl, 0o600)
		x.write(fd, "hello")
		x.pread(fd, 10, 1)
		x.open("f/x", rdonly, 0)
		x.open(".", rdwr, 0)
		x.open("f", unix.O_DIRECTORY, 0)
		x.open("f", rdwr|trunc, 0)
		x.fstat(fd)
		x.open("", rdonly, 0)
		ro := x.open("f", rdonly, 0)
		x.write(ro, "x")
		wo := x.open("f", wronly, 0)
		x.pread(wo, 1, 0)
		x.do("close", unix.Close(fd))
		x.do("close again", unix.Close(fd))
	}},
	{"umask", "", func(x *posixRun) {
		unix.Umask(0o027)
		x.mkdir("d", 0o777)
		x.open("f", wronly|creat, 0o666)
		x.do("mkfifo", unix.Mkfifo(x.path("p"), 0o777))
		x.open(".", unix.O_TMPFILE|rdwr, 0o666)
		unix.Umask(0)
		x.mkdir("d2", 0o1777)
		x.open("f2", wronly|creat, 0o4755)
		for _, n := range []string{"d", "f", "p", "d2", "f2"} {
			x.lstat(n)
		}
	}},
	{"append", "", func(x *posixRun) {
		x.file("f", "one")
		fd := x.open("f", wronly|unix.O_APPEND, 0)
		x.write(fd, "two")
		x.pwrite(fd, "three", 0)
		x.cat("f")
		other := x.open("f", wronly|unix.O_APPEND, 0)
		x.write(other, "four")
		x.write(fd, "five")
		x.cat("f")
		n, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, 0)
		x.do("clear O_APPEND", err, n)
		x.pwrite(fd, "ONE", 0)
		n, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_APPEND)
		x.do("set O_APPEND", err, n)
		x.write(fd, "six")
		x.cat("f")
		off, err := unix.Seek(fd, 0, unix.SEEK_CUR)
		x.do("position", err, off)
		v, err := unix.Pwritev2(other, [][]byte{[]byte("a"), []byte("b")}, 1, 0)
		x.do("pwritev2", err, v)
		x.cat("f")
	}},
	{"direct", "", func(x *posixRun) {
		fd := x.open("f", rdwr|creat|unix.O_DIRECT, 0o644)
		raw := make([]byte, 3*4096)
		b := raw[4096-int(uintptr(unsafe.Pointer(&raw[0]))%4096):][:4096]
		copy(b, "direct")
		n, err := unix.Pwrite(fd, b, 4096)
		x.do("pwrite", err, n)
		clear(b)
		n, err = unix.Pread(fd, b, 4096)
		x.do("pread", err, n, string(b[:6]))
		runtime.KeepAlive(raw)
		x.fstat(fd)
	}},
	{"direct unaligned", "O_DIRECT does not ask for aligned buffers and offsets", func(x *posixRun) {
		fd := x.open("f", rdwr|creat|unix.O_DIRECT, 0o644)
		x.pwrite(fd, "x", 1)
	}},
	{"unlinked but open", "", func(x *posixRun) {
		fd := x.open("f", rdwr|creat, 0o644)
		x.unlink("f")
		x.write(fd, "still here")
		x.pread(fd, 20, 0)
		x.fstat(fd)
		x.do("ftruncate", unix.Ftruncate(fd, 5))
		x.do("fchmod", unix.Fchmod(fd, 0o600))
		x.do("fsetxattr", unix.Fsetxattr(fd, "user.x", []byte("y"), 0))
		b := make([]byte, 10)
		n, err := unix.Fgetxattr(fd, "user.x", b)
		x.do("fgetxattr", err, string(b[:max(n, 0)]))
		x.fstat(fd)
		x.file("f", "another")
		x.pread(fd, 20, 0)
		x.do("link it", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, x.path("g"),
			unix.AT_SYMLINK_FOLLOW))
		x.mkdir("d", 0o755)
		d := x.open("d", unix.O_DIRECTORY, 0)
		x.rmdir("d")
		x.do("in a removed directory", unix.Mkdirat(d, "x", 0o755))
		var st unix.Stat_t
		x.do("stat of it", unix.Fstat(d, &st), st.Nlink)
		x.list(".")
	}},
	{"tmpfile", "", func(x *posixRun) {
		fd := x.open(".", rdwr|unix.O_TMPFILE, 0o640)
		x.write(fd, "content")
		x.fstat(fd)
		x.do("linkat", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, x.path("named"),
			unix.AT_SYMLINK_FOLLOW))
		x.cat("named")
		x.lstat("named")
		fd = x.open(".", rdwr|unix.O_TMPFILE|excl, 0o640)
		x.do("linkat of O_EXCL", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD,
			x.path("never"), unix.AT_SYMLINK_FOLLOW))
		x.open("named", rdwr|unix.O_TMPFILE, 0o640)
	}},
	{"hard links", "", func(x *posixRun) {
		x.file("a", "1")
		x.link("a", "b")
		x.link("b", "c")
		x.same("a", "c")
		x.lstat("b")
		x.unlink("a")
		x.file("b", "two")
		x.cat("c")
		x.lstat("c")
		x.rename("b", "c") // of one file: nothing happens
		x.list(".")
		x.link("b", "c")
		x.link("no", "d")
		x.mkdir("dir", 0o755)
		x.link("dir", "dir2")
		x.symlink("b", "l")
		x.link("l", "l2")
		x.lstat("l2")
	}},
	{"directories", "", func(x *posixRun) {
		x.mkdir("d", 0o755)
		x.mkdir("d", 0o755)
		x.mkdir("d/e", 0o700)
		x.lstat("d")
		x.rmdir("d")
		x.rmdir("d/e")
		x.rmdir("d/no")
		x.file("d/f", "x")
		x.rmdir("d/f")
		x.unlink("d")
		x.mkdir("no/x", 0o755)
		x.mkdir("d/f/x", 0o755)
		x.rmdir("d/.")
		x.rmdir("d/..")
		x.unlink("d/f")
		x.rmdir("d")
		x.list(".")
	}},
	{"long names", "", func(x *posixRun) {
		x.mkdir(strings.Repeat("n", 255), 0o755)
		x.mkdir(strings.Repeat("n", 256), 0o755)
		x.symlink(strings.Repeat("t", 4095), "l")
		x.symlink(strings.Repeat("t", 4096), "l2")
		to, err := os.Readlink(x.path("l"))
		x.do("readlink", err, len(to))
		x.lstat("l")
		x.rename("l", strings.Repeat("n", 256))
		x.link("l", strings.Repeat("n", 256))
		x.mkdir("a\nb \xff", 0o755)
		x.list(".")
	}},
	{"rename", "", func(x *posixRun) {
		x.file("a", "a")
		x.file("b", "b")
		x.rename("a", "b")
		x.cat("b")
		x.lstat("a")
		x.mkdir("d", 0o755)
		x.mkdir("e", 0o755)
		x.rename("d", "e")
		x.mkdir("d", 0o755)
		x.file("e/x", "x")
		x.rename("d", "e")
		x.rename("b", "e")
		x.rename("e", "b")
		x.rename("e", "e/sub")
		x.rename("no", "x")
		x.rename("e", "d/moved")
		x.cat("d/moved/x")
		x.file("d/moved/y", "y")
		x.list("d/moved")
		x.lstat("d")
	}},
	{"rename with flags", "", func(x *posixRun) {
		x.file("a", "a")
		x.file("b", "b")
		x.mkdir("d", 0o755)
		x.file("d/x", "x")
		x.rename2("a", "b", unix.RENAME_NOREPLACE)
		x.rename2("a", "c", unix.RENAME_NOREPLACE)
		x.rename2("c", "b", unix.RENAME_EXCHANGE)
		x.cat("c")
		x.cat("b")
		x.rename2("b", "d", unix.RENAME_EXCHANGE)
		x.cat("d")
		x.cat("b/x")
		x.file("b/y", "y")
		x.list("b")
		x.rename2("b", "no", unix.RENAME_EXCHANGE)
		x.rename2("b", "c", unix.RENAME_EXCHANGE|unix.RENAME_NOREPLACE)
		x.rename2("b", "c", 1<<30)
	}},
	{"whiteout", "", func(x *posixRun) {
		x.file("a", "a")
		x.rename2("a", "b", unix.RENAME_WHITEOUT)
		x.lstat("a")
		x.cat("b")
	}},
	{"symbolic links", "", func(x *posixRun) {
		x.file("f", "content")
		x.symlink("f", "l")
		x.symlink("f", "l")
		x.cat("l")
		x.lstat("l")
		x.chown("l", 1000, 1000)
		x.lstat("l")
		x.symlink("loop", "loop")
		x.cat("loop")
		x.open("l", rdonly|unix.O_NOFOLLOW, 0)
		x.symlink("/nowhere", "dangling")
		x.cat("dangling")
		x.open("dangling", wronly|creat|excl, 0o644)
		x.symlink("", "empty")
		b := make([]byte, 3)
		n, err := unix.Readlink(x.path("dangling"), b)
		x.do("short readlink", err, n, string(b[:max(n, 0)]))
		n, err = unix.Readlink(x.path("f"), b)
		x.do("readlink of a file", err, n)
		ts := []unix.Timespec{{Sec: 5}, {Sec: 6}}
		x.do("utimensat of a link", unix.UtimesNanoAt(unix.AT_FDCWD, x.path("l"), ts, unix.AT_SYMLINK_NOFOLLOW))
		var st unix.Stat_t
		x.do("its time", unix.Lstat(x.path("l"), &st), st.Mtim.Sec)
	}},
	{"special files", "", func(x *posixRun) {
		x.do("fifo", unix.Mknod(x.path("p"), unix.S_IFIFO|0o640, 0))
		x.do("socket", unix.Mknod(x.path("s"), unix.S_IFSOCK|0o640, 0))
		x.do("char", unix.Mknod(x.path("c"), unix.S_IFCHR|0o640, int(unix.Mkdev(1, 3))))
		x.do("block", unix.Mknod(x.path("b"), unix.S_IFBLK|0o640, int(unix.Mkdev(259, 300))))
		x.do("file", unix.Mknod(x.path("f"), unix.S_IFREG|0o640, 0))
		for _, n := range []string{"p", "s", "c", "b", "f"} {
			x.lstat(n)
		}
		x.open("s", rdonly, 0)
		null := x.open("c", rdwr, 0)
		x.write(null, "gone")
		r := x.open("p", rdonly|unix.O_NONBLOCK, 0)
		w := x.open("p", wronly|unix.O_NONBLOCK, 0)
		x.write(w, "through")
		b := make([]byte, 10)
		n, err := unix.Read(r, b)
		x.do("read", err, string(b[:max(n, 0)]))
		l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		x.do("socket", err)
		if len(x.dir) < 90 { // sun_path
			x.do("bind", unix.Bind(l, &unix.SockaddrUnix{Name: x.path("listen")}))
			x.do("listen", unix.Listen(l, 1))
			c, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			x.do("connect", unix.Connect(c, &unix.SockaddrUnix{Name: x.path("listen")}))
		}
		x.as(1000, 1000, nil, func() {
			x.do("device without the right", unix.Mknod(x.path("no"), unix.S_IFCHR|0o640, int(unix.Mkdev(1, 3))))
		})
	}},
	{"truncate", "", func(x *posixRun) {
		x.file("f", "0123456789")
		x.truncate("f", 4)
		x.cat("f")
		x.truncate("f", 8)
		x.cat("f")
		x.truncate("f", -1)
		x.truncate("no", 1)
		x.mkdir("d", 0o755)
		x.truncate("d", 1)
		ro := x.open("f", rdonly, 0)
		x.do("ftruncate read-only", unix.Ftruncate(ro, 1))
		fd := x.open("f", rdwr, 0)
		x.do("ftruncate", unix.Ftruncate(fd, 1<<33))
		x.fstat(fd)
		x.pwrite(fd, "end", 1<<33-3)
		x.pread(fd, 5, 1<<33-3)
	}},
	{"times", "", func(x *posixRun) {
		x.file("f", "x")
		set := func(what string, ts ...unix.Timespec) {
			x.do(what, unix.UtimesNanoAt(unix.AT_FDCWD, x.path("f"), ts, 0))
			var st unix.Stat_t
			_ = unix.Stat(x.path("f"), &st)
			for _, ts := range []unix.Timespec{st.Atim, st.Mtim} {
				if recent(ts) {
					x.say("time", nil, "now")
				} else {
					x.say("time", nil, ts.Sec, ts.Nsec)
				}
			}
		}
		set("both", unix.Timespec{Sec: 100, Nsec: 123456789}, unix.Timespec{Sec: 200, Nsec: 1})
		set("omit", unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Sec: 300})
		set("now", unix.Timespec{Nsec: unix.UTIME_NOW}, unix.Timespec{Nsec: unix.UTIME_OMIT})
		set("before 1970", unix.Timespec{Sec: -5}, unix.Timespec{Sec: -6, Nsec: 5})
		set("beyond 2038", unix.Timespec{Sec: 1 << 32}, unix.Timespec{Sec: 1<<33 + 1})
		set("bad", unix.Timespec{Nsec: 1e9}, unix.Timespec{})
		var st unix.Statx_t
		x.do("birth", unix.Statx(unix.AT_FDCWD, x.path("f"), 0, unix.STATX_BTIME|unix.STATX_BASIC_STATS, &st),
			st.Mask&unix.STATX_BTIME != 0, recent(unix.Timespec{Sec: st.Btime.Sec}))
		var before, after unix.Stat_t
		_ = unix.Stat(x.dir, &before)
		x.file("g", "x")
		_ = unix.Stat(x.dir, &after)
		x.do("directory's time", nil, after.Mtim != before.Mtim || recent(after.Mtim))
	}},
	{"holes", "", func(x *posixRun) {
		fd := x.open("f", rdwr|creat, 0o644)
		x.pwrite(fd, "data", 1<<20)
		x.do("ftruncate", unix.Ftruncate(fd, 3<<20))
		for _, from := range []int64{0, 1<<20 + 1, 2 << 20, 3 << 20, 4 << 20} {
			for _, whence := range []int{unix.SEEK_DATA, unix.SEEK_HOLE} {
				at, err := unix.Seek(fd, from, whence)
				x.do(fmt.Sprintf("seek %d %d", from, whence), err, at)
			}
		}
		at, err := unix.Seek(fd, -5, unix.SEEK_END)
		x.do("seek to the end", err, at)
		at, err = unix.Seek(fd, -5, unix.SEEK_SET)
		x.do("seek before the start", err, at)
		var st unix.Stat_t
		x.do("blocks", unix.Fstat(fd, &st), st.Blocks < 100)
	}},
	{"fallocate", "", func(x *posixRun) {
		fd := x.open("f", rdwr|creat, 0o644)
		x.write(fd, strings.Repeat("x", 3*4096))
		fa := func(what string, mode uint32, off, n int64) {
			x.do("fallocate "+what, unix.Fallocate(fd, mode, off, n))
			x.fstat(fd)
		}
		fa("more", 0, 0, 5*4096)
		fa("keep size", unix.FALLOC_FL_KEEP_SIZE, 0, 9*4096)
		fa("punch", unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 4096, 4096)
		x.pread(fd, 2, 4095)
		x.pread(fd, 2, 2*4096-1)
		fa("punch without keep", unix.FALLOC_FL_PUNCH_HOLE, 4096, 4096)
		fa("zero", unix.FALLOC_FL_ZERO_RANGE, 0, 10)
		x.pread(fd, 12, 0)
		fa("nothing", 0, 0, 0)
		fa("negative", 0, -1, 5)
		ro := x.open("f", rdonly, 0)
		x.do("read-only", unix.Fallocate(ro, 0, 0, 10))
	}},
	{"collapse and insert", "fallocate cannot collapse, insert or unshare ranges", func(x *posixRun) {
		fd := x.open("f", rdwr|creat, 0o644)
		x.write(fd, strings.Repeat("x", 3*4096))
		x.do("collapse", unix.Fallocate(fd, unix.FALLOC_FL_COLLAPSE_RANGE, 0, 4096))
		x.do("insert", unix.Fallocate(fd, unix.FALLOC_FL_INSERT_RANGE, 0, 4096))
	}},
	{"copy_file_range", "", func(x *posixRun) {
		x.file("a", strings.Repeat("0123456789", 1000))
		src, dst := x.open("a", rdonly, 0), x.open("b", rdwr|creat, 0o644)
		from, to := int64(5), int64(20)
		n, err := unix.CopyFileRange(src, &from, dst, &to, 10, 0)
		x.do("copy", err, n, from, to)
		n, err = unix.CopyFileRange(src, nil, dst, nil, 100, 0)
		x.do("copy at positions", err, n)
		x.pread(dst, 40, 0)
		from, to = 9995, 0
		n, err = unix.CopyFileRange(src, &from, dst, &to, 100, 0)
		x.do("copy to the end", err, n, from, to)
		n, err = unix.CopyFileRange(src, &from, dst, &to, 100, 0)
		x.do("copy beyond", err, n)
		from, to = 0, 100
		n, err = unix.CopyFileRange(dst, &from, dst, &to, 200, 0)
		x.do("overlapping", err, n)
		n, err = unix.CopyFileRange(src, nil, src, nil, 1, 0)
		x.do("to read-only", err, n)
		n, err = unix.Sendfile(dst, src, nil, 4)
		x.do("sendfile", err, n)
	}},
	{"extended attributes", "", func(x *posixRun) {
		x.file("f", "x")
		x.getxattr("f", "user.a")
		x.setxattr("f", "user.a", "1", unix.XATTR_REPLACE)
		x.setxattr("f", "user.a", "1", unix.XATTR_CREATE)
		x.setxattr("f", "user.a", "1", unix.XATTR_CREATE)
		x.setxattr("f", "user.empty", "", 0)
		x.setxattr("f", "trusted.t", "t", 0)
		x.setxattr("f", "user.big", strings.Repeat("b", 3000), 0)
		x.setxattr("f", "user.huge", strings.Repeat("b", 70000), 0)
		x.setxattr("f", "nonsense", "1", 0)
		x.getxattr("f", "user.a")
		x.getxattr("f", "user.empty")
		n, err := unix.Lgetxattr(x.path("f"), "user.a", nil)
		x.do("size", err, n)
		n, err = unix.Lgetxattr(x.path("f"), "user.big", make([]byte, 10))
		x.do("too small", err, n)
		b := make([]byte, 1000)
		n, err = unix.Llistxattr(x.path("f"), b)
		x.do("list", err, sortedNames(strings.Split(strings.Trim(string(b[:max(n, 0)]), "\x00"), "\x00")))
		n, err = unix.Llistxattr(x.path("f"), nil)
		x.do("list size", err, n)
		x.do("remove", unix.Lremovexattr(x.path("f"), "user.a"))
		x.do("remove again", unix.Lremovexattr(x.path("f"), "user.a"))
		x.symlink("f", "l")
		x.setxattr("l", "user.a", "1", 0)
		x.setxattr("l", "trusted.a", "1", 0)
		x.getxattr("l", "trusted.a")
		x.mkdir("d", 0o755)
		x.setxattr("d", "user.d", "1", 0)
		x.getxattr("d", "user.d")
		x.as(1000, 1000, nil, func() {
			x.getxattr("f", "trusted.t")
			x.setxattr("f", "user.a", "1", 0)
			x.setxattr("f", "trusted.a", "1", 0)
			x.getxattr("f", "user.big")
		})
	}},
	{"access control lists", "", func(x *posixRun) {
		x.chmod(".", 0o755)
		x.file("f", "secret")
		x.chmod("f", 0o600)
		x.as(1000, 1000, nil, func() { x.cat("f") })
		x.setxattr("f", "system.posix_acl_access", acl(6, user(1000, 4), 0, 4, 0), 0)
		x.as(1000, 1000, nil, func() { x.cat("f"); x.open("f", rdwr, 0) })
		x.as(1001, 1001, nil, func() { x.cat("f") })
		x.lstat("f")
		x.chmod("f", 0o600) // the mask
		x.as(1000, 1000, nil, func() { x.cat("f") })
		x.getxattr("f", "system.posix_acl_access")
		x.mkdir("d", 0o755)
		x.setxattr("d", "system.posix_acl_default", acl(7, user(1000, 7), 5, 7, 1), 0)
		unix.Umask(0o077)
		x.open("d/f", wronly|creat, 0o666)
		x.mkdir("d/d", 0o777)
		x.do("fifo", unix.Mkfifo(x.path("d/p"), 0o666))
		for _, n := range []string{"d/f", "d/d", "d/p"} {
			x.lstat(n)
			x.getxattr(n, "system.posix_acl_access")
			x.getxattr(n, "system.posix_acl_default")
		}
		x.as(1001, 1001, nil, func() { x.setxattr("f", "system.posix_acl_access", acl(7, "", 7, 7, 7), 0) })
		x.setxattr("f", "system.posix_acl_access", "nonsense", 0)
		x.do("remove", unix.Lremovexattr(x.path("f"), "system.posix_acl_access"))
		x.lstat("f")
	}},
	{"permissions", "", func(x *posixRun) {
		x.file("f", "x")
		x.chmod("f", 0o640)
		x.chown("f", 1000, 2000)
		x.mkdir("d", 0o700)
		x.file("d/x", "x")
		x.mkdir("w", 0o777)
		x.chmod("w", 0o777)
		for _, who := range []struct {
			uid, gid int
			groups   []uint32
		}{{1000, 1000, nil}, {1001, 2000, nil}, {1002, 1002, []uint32{2000}}, {1003, 1003, nil}} {
			x.as(who.uid, who.gid, who.groups, func() {
				x.say("user", nil, who.uid)
				x.cat("f")
				x.open("f", wronly, 0)
				x.cat("d/x")
				x.list("d")
				x.mkdir("sub", 0o755)
				x.chmod("f", 0o640)
				x.truncate("f", 1)
				x.unlink("f")
				name := fmt.Sprintf("w/by%d", who.uid)
				x.open(name, wronly|creat, 0o600)
				x.lstat(name)
				x.mkdir(name+"d", 0o755)
				x.lstat(name + "d")
				x.symlink("t", name+"l")
				x.lstat(name + "l")
				x.do("mkfifo", unix.Mkfifo(x.path(name+"p"), 0o600))
				x.lstat(name + "p")
				x.open("w", rdwr|unix.O_TMPFILE, 0o600)
				x.do("access", unix.Access(x.path("f"), unix.R_OK))
				x.do("access for writing", unix.Access(x.path("f"), unix.W_OK))
				x.do("access to execute", unix.Access(x.path("f"), unix.X_OK))
				x.do("utimes", unix.UtimesNanoAt(unix.AT_FDCWD, x.path("f"), []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0))
				x.do("touch", unix.UtimesNanoAt(unix.AT_FDCWD, x.path("f"), nil, 0))
			})
		}
		// As a group member, a directory that only the group may write to.
		x.mkdir("g", 0o770)
		x.chown("g", 0, 2000)
		x.chmod("g", 0o770)
		x.as(1002, 1002, []uint32{2000}, func() { x.open("g/f", wronly|creat, 0o600); x.lstat("g/f"); x.unlink("g/f") })
	}},
	{"ownership", "", func(x *posixRun) {
		x.file("f", "x")
		x.chown("f", 1000, 1000)
		x.as(1000, 1000, []uint32{2000}, func() {
			x.chown("f", -1, 2000)
			x.lstat("f")
			x.chown("f", -1, 3000)
			x.chown("f", 1001, -1)
			x.chown("f", 1000, -1)
			x.chmod("f", 0o2755)
			x.lstat("f")
		})
		x.chown("f", -1, 3000)
		x.as(1000, 1000, []uint32{2000}, func() {
			x.chmod("f", 0o2755) // not of the group: without set-group-ID
			x.lstat("f")
		})
		x.chmod("f", 0o6755)
		x.chown("f", 1001, 1001)
		x.lstat("f")
		x.do("fchownat of nothing", unix.Lchown(x.path("no"), 1, 1))
	}},
	{"ownership that stays", "chown to no other owner and group (-1, -1) does not take set-user-ID away", func(x *posixRun) {
		x.file("f", "x")
		x.chmod("f", 0o6755)
		x.chown("f", -1, -1)
		x.lstat("f")
	}},
	{"set-group-ID directories", "", func(x *posixRun) {
		x.mkdir("d", 0o777)
		x.chown("d", 0, 2000)
		x.chmod("d", 0o2777)
		x.as(1000, 1000, nil, func() {
			x.open("d/f", wronly|creat, 0o666)
			x.open("d/s", wronly|creat, 0o2775)
			x.mkdir("d/d", 0o755)
			x.symlink("x", "d/l")
			x.do("fifo", unix.Mkfifo(x.path("d/p"), 0o666))
			for _, n := range []string{"d/f", "d/s", "d/d", "d/l", "d/p"} {
				x.lstat(n)
			}
			x.mkdir("d/d/e", 0o755)
			x.lstat("d/d/e")
		})
		x.as(1000, 1000, []uint32{2000}, func() {
			x.open("d/s2", wronly|creat, 0o2775)
			x.lstat("d/s2")
		})
	}},
	{"set-user-ID is taken away", "", func(x *posixRun) {
		each := func(what string, do func(name string)) {
			x.file("f", "content")
			x.chown("f", 1000, 1000)
			x.chmod("f", 0o6777)
			x.as(1001, 1001, nil, func() { do("f") })
			x.say(what, nil)
			x.lstat("f")
			x.unlink("f")
		}
		each("write", func(n string) { x.write(x.open(n, wronly, 0), "x") })
		each("pwrite", func(n string) { x.pwrite(x.open(n, wronly, 0), "x", 3) })
		each("truncate", func(n string) { x.truncate(n, 3) })
		each("O_TRUNC", func(n string) { x.open(n, wronly|trunc, 0) })
		each("ftruncate", func(n string) { x.do("ftruncate", unix.Ftruncate(x.open(n, wronly, 0), 2)) })
		each("fallocate", func(n string) { x.do("fallocate", unix.Fallocate(x.open(n, wronly, 0), 0, 0, 100)) })
		each("read", func(n string) { x.cat(n) })
		x.file("f", "content")
		x.chmod("f", 0o6777)
		x.write(x.open("f", wronly, 0), "by root")
		x.lstat("f")
	}},
	{"sticky directories", "", func(x *posixRun) {
		x.mkdir("d", 0o777)
		x.chmod("d", 0o1777)
		x.as(1000, 1000, nil, func() { x.open("d/f", wronly|creat, 0o666); x.mkdir("d/e", 0o777) })
		x.as(1001, 1001, nil, func() {
			x.unlink("d/f")
			x.rmdir("d/e")
			x.rename("d/f", "d/g")
			x.open("d/mine", wronly|creat, 0o666)
			x.rename("d/mine", "d/f")
			x.unlink("d/mine")
		})
		x.as(1000, 1000, nil, func() { x.rename("d/f", "d/g"); x.unlink("d/g"); x.rmdir("d/e") })
	}},
	{"record locks", "", func(x *posixRun) {
		x.file("f", strings.Repeat("x", 100))
		a, b := x.open("f", rdwr, 0), x.open("f", rdwr, 0)
		lock := func(what string, fd int, cmd int, typ int16, from, n int64) {
			lk := unix.Flock_t{Type: typ, Start: from, Len: n}
			err := unix.FcntlFlock(uintptr(fd), cmd, &lk)
			x.do("lock "+what, err, lk.Type, lk.Start, lk.Len)
		}
		lock("all", a, unix.F_SETLK, unix.F_WRLCK, 0, 0)
		lock("again by the same process", b, unix.F_SETLK, unix.F_RDLCK, 10, 10)
		lock("test by itself", b, unix.F_GETLK, unix.F_WRLCK, 0, 5)
		lock("by another open file", b, unix.F_OFD_SETLK, unix.F_WRLCK, 0, 5)
		lock("test by another open file", b, unix.F_OFD_GETLK, unix.F_WRLCK, 0, 5)
		lock("give back", a, unix.F_SETLK, unix.F_UNLCK, 0, 0)
		lock("by another open file now", b, unix.F_OFD_SETLK, unix.F_WRLCK, 0, 5)
		lock("beside it", a, unix.F_SETLK, unix.F_WRLCK, 5, 5)
		lock("over it", a, unix.F_SETLK, unix.F_RDLCK, 0, 5)
		ro := x.open("f", rdonly, 0)
		lock("write lock read-only", ro, unix.F_SETLK, unix.F_WRLCK, 50, 5)
		x.do("close", unix.Close(ro)) // ends all of this process
		lock("after a close", b, unix.F_OFD_SETLK, unix.F_WRLCK, 5, 5)
	}},
	{"flock", "", func(x *posixRun) {
		x.file("f", "x")
		a, b := x.open("f", rdwr, 0), x.open("f", rdonly, 0)
		x.do("exclusive", unix.Flock(a, unix.LOCK_EX|unix.LOCK_NB))
		x.do("shared, other", unix.Flock(b, unix.LOCK_SH|unix.LOCK_NB))
		x.do("again", unix.Flock(a, unix.LOCK_EX|unix.LOCK_NB))
		x.do("weaker", unix.Flock(a, unix.LOCK_SH|unix.LOCK_NB))
		x.do("shared, other", unix.Flock(b, unix.LOCK_SH|unix.LOCK_NB))
		x.do("exclusive", unix.Flock(a, unix.LOCK_EX|unix.LOCK_NB))
		dup, _ := unix.Dup(b)
		x.do("close one", unix.Close(b))
		c := x.open("f", rdonly, 0)
		x.do("exclusive, third", unix.Flock(c, unix.LOCK_EX|unix.LOCK_NB))
		x.do("close", unix.Close(dup))
		x.do("close", unix.Close(a))
		x.do("exclusive, third, soon", soonFlock(c, unix.LOCK_EX))
		done := make(chan error, 1)
		d := x.open("f", rdonly, 0)
		go func() { done <- unix.Flock(d, unix.LOCK_EX) }()
		x.do("unlock", unix.Flock(c, unix.LOCK_UN))
		x.do("waited", <-done)
	}},
	{"statfs", "", func(x *posixRun) {
		var st unix.Statfs_t
		x.do("statfs", unix.Statfs(x.dir, &st), st.Bsize, st.Frsize, st.Namelen, st.Blocks, st.Files)
	}},
	{"big directory", "", func(x *posixRun) {
		const n = 3000
		for i := range n {
			if err := os.WriteFile(x.path(fmt.Sprintf("file-with-a-longer-name-%05d", i)), nil, 0o644); err != nil {
				x.say("make", err)
			}
		}
		x.list(".")
		d := x.open(".", rdonly|unix.O_DIRECTORY, 0)
		buf := make([]byte, 8192)
		count := func(what string) {
			total := 0
			for {
				k, err := unix.ReadDirent(d, buf)
				if err != nil {
					x.say(what, err)
				}
				if k <= 0 {
					break
				}
				_, c, _ := unix.ParseDirent(buf[:k], -1, nil)
				total += c
			}
			x.do(what, nil, total)
		}
		count("first time")
		at, err := unix.Seek(d, 0, unix.SEEK_SET)
		x.do("rewind", err, at)
		k, err := unix.ReadDirent(d, buf)
		x.do("some", err, k > 0)
		here, err := unix.Seek(d, 0, unix.SEEK_CUR)
		x.do("tell", err)
		k, _ = unix.ReadDirent(d, buf)
		_, _, next := unix.ParseDirent(buf[:k], 1, nil)
		_, err = unix.Seek(d, here, unix.SEEK_SET)
		x.do("seek", err)
		k, _ = unix.ReadDirent(d, buf)
		_, _, again := unix.ParseDirent(buf[:k], 1, nil)
		x.do("the same entry", nil, len(next) == 1 && len(again) == 1 && next[0] == again[0])
		for i := range n {
			if err := unix.Unlink(x.path(fmt.Sprintf("file-with-a-longer-name-%05d", i))); err != nil {
				x.say("unlink", err)
			}
		}
		x.list(".")
	}},
	{"file attributes", "", func(x *posixRun) {
		x.file("f", "x")
		fd := x.open("f", rdwr, 0)
		v, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		x.do("getflags", err, v&0x30)
		x.do("append only", unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, v|0x20))
		x.truncate("f", 0)
		x.unlink("f")
		x.do("normal", unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, v&^0x20))
		x.unlink("f")
		_, err = unix.IoctlGetInt(fd, unix.TCGETS)
		x.do("of a terminal", err)
	}},
	{"vectors", "", func(x *posixRun) {
		fd := x.open("f", rdwr|creat, 0o644)
		n, err := unix.Writev(fd, [][]byte{[]byte("ab"), {}, []byte("cde")})
		x.do("writev", err, n)
		a, b := make([]byte, 1), make([]byte, 10)
		n, err = unix.Preadv(fd, [][]byte{a, b}, 1)
		x.do("preadv", err, n, string(a), string(b[:3]))
		big := []byte(strings.Repeat("0123456789abcdef", 3<<16)) // 3 MiB: several requests
		n, err = unix.Pwrite(fd, big, 7)
		x.do("pwrite", err, n)
		back := make([]byte, len(big)+10)
		n, err = unix.Pread(fd, back, 7)
		x.do("pread", err, n, string(back[:n]) == string(big))
		x.fstat(fd)
	}},
	{"sync", "", func(x *posixRun) {
		fd := x.open("f", rdwr|creat|unix.O_SYNC, 0o644)
		x.write(fd, "x")
		x.do("fsync", unix.Fsync(fd))
		x.do("fdatasync", unix.Fdatasync(fd))
		x.do("sync_file_range", unix.SyncFileRange(fd, 0, 0, 0))
		x.do("syncfs", unix.Syncfs(fd))
		d := x.open(".", unix.O_DIRECTORY, 0)
		x.do("fsync of a directory", unix.Fsync(d))
		x.do("fadvise", unix.Fadvise(fd, 0, 0, unix.FADV_WILLNEED))
	}},
	{"mapped", "", func(x *posixRun) {
		fd := x.open("f", rdwr|creat, 0o644)
		x.write(fd, strings.Repeat("x", 10000))
		m, err := unix.Mmap(fd, 0, 10000, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		x.do("mmap", err)
		copy(m[5000:], "stored")
		x.pread(fd, 8, 4999)
		x.pwrite(fd, "written", 9000)
		x.do("seen", nil, string(m[9000:9007]))
		copy(m[9990:], "end")
		x.do("msync", unix.Msync(m, unix.MS_SYNC))
		x.do("close", unix.Close(fd))
		copy(m[0:], "after close")
		x.do("munmap", unix.Munmap(m))
		b, err := os.ReadFile(x.path("f"))
		x.do("content", err, len(b), string(b[:11]), string(b[5000:5006]), string(b[9000:9007]), string(b[9990:9993]))
		ro := x.open("f", rdonly, 0)
		_, err = unix.Mmap(ro, 0, 4096, unix.PROT_WRITE, unix.MAP_SHARED)
		x.do("shared and writable of a read-only file", err)
		p, err := unix.Mmap(ro, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		x.do("private", err)
		p[0] = 'P'
		x.pread(ro, 5, 0)
		x.do("munmap", unix.Munmap(p))
	}},
}

// acl is the value of an ACL's attribute (linux/posix_acl_xattr.h).
func acl(owner int, users string, group, mask, other int) string {
	entry := func(tag, perm int, id uint32) string {
		return string([]byte{byte(tag), 0, byte(perm), 0, byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})
	}
	const none = 0xffffffff
	return "\x02\x00\x00\x00" + entry(1, owner, none) + users + entry(4, group, none) + entry(0x10, mask, none) +
		entry(0x20, other, none)
}

func user(id uint32, perm int) string {
	return string([]byte{2, 0, byte(perm), 0, byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})
}
