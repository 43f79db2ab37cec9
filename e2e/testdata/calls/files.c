/* Calls on files: data, descriptors, metadata, names. Runs in an empty directory. */
#include "expect.h"
#include <dirent.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <utime.h>

static int self;
static char buf[8192], big[300 << 10];

static void data(int f)
{
	struct iovec v[3] = {{"abc", 3}, {0, 0}, {"defgh", 5}}, o[2] = {{buf, 3}, {buf + 100, 50}};
	long r;

	CALL(write, f, P("hello"), 5);
	mem(1, "hello", 5);
	CALL(pwrite64, f, P("world"), 5, 100);
	mem(1, "world", 5);
	CALL(writev, f, P(v), 3);
	mem(1, "abcdefgh", 8);
	CALL(pwritev, f, P(v), 3, 200);
	mem(1, "abcdefgh", 8);
	CALL(pwritev2, f, P(v), 3, 300, 0, 0);
	mem(1, "abcdefgh", 8);
	CALL(lseek, f, 0, SEEK_SET);
	r = CALL(read, f, P(buf), sizeof(buf));
	mem(1, buf, r);
	CALL(read, f, P(buf), sizeof(buf)); /* end of file */
	CALL(read, 99, P(buf), sizeof(buf)); /* EBADF */
	r = CALL(pread64, f, P(buf), 10, 98);
	mem(1, buf, r);
	CALL(lseek, f, 0, SEEK_SET);
	CALL(readv, f, P(o), 2);
	char got[53];
	memcpy(got, buf, 3), memcpy(got + 3, buf + 100, 50);
	mem(1, got, 53);
	CALL(preadv, f, P(o), 2, 200);
	memcpy(got, buf, 3), memcpy(got + 3, buf + 100, 50);
	mem(1, got, 53);
	CALL(preadv2, f, P(o), 2, 305, 0, 0);
	mem(1, buf, 3);
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = i * 7 + i / 251;
	CALL(pwrite64, f, P(big), sizeof(big), 4096); /* goes out of line */
	mem(1, big, sizeof(big));
	CALL(fallocate, f, 0, 0, 1 << 20);
	CALL(fallocate, f, 3, 4096, 8192); /* a hole */
	CALL(ftruncate, f, 100000);
	CALL(truncate, P("file"), 99999);
	path(0, "file");
	CALL(fadvise64, f, 0, 4096, 4);
	CALL(readahead, f, 0, 4096);
	CALL(sync_file_range, f, 0, 4096, 2);
	CALL(fsync, f);
	CALL(fdatasync, f);
	CALL(syncfs, f);
	uint64_t range[2] = {0, 1 << 20}, stat[5] = {0};
	if (CALL(cachestat, f, P(range), P(stat), 0) >= 0)
		mem(1, range, 16), mem(2, stat, 40);
	else
		mem(1, range, 16);
}

static void copies(int f)
{
	int p[2], to;
	long r;
	off_t in = 100, out = 7;
	struct iovec v = {"spliced", 7};

	r = CALL(creat, P("to"), 0600);
	path(0, "to");
	to = r;
	CALL(copy_file_range, f, P(&in), to, P(&out), 5, 0);
	mem(0, "world", 5), mem(1, &in, 8), mem(3, &out, 8);
	in = 100;
	CALL(sendfile, to, f, P(&in), 3);
	mem(1, "wor", 3), mem(2, &in, 8);
	CALL(pipe2, P(p), O_CLOEXEC);
	mem(0, p, 8), fd(p[0]), fd(p[1]);
	CALL(vmsplice, p[1], P(&v), 1, 0);
	mem(1, "spliced", 7);
	in = 100;
	CALL(splice, f, P(&in), p[1], 0, 4, 0);
	mem(0, "worl", 4), mem(1, &in, 8);
	CALL(tee, p[0], p[1], 100, 2);
	CALL(close, p[0]);
	CALL(close, p[1]);
#ifdef SYS_pipe
	CALL(pipe, P(p));
	mem(0, p, 8), fd(p[0]), fd(p[1]);
	CALL(close, p[0]);
	CALL(close, p[1]);
#endif
	CALL(close_range, to, to, 0);
}

static void control(int f)
{
	struct flock l = {.l_type = F_WRLCK, .l_start = 5, .l_len = 7}, got = {.l_type = F_WRLCK, .l_start = 1};
	int owner[2] = {1, self}, n = 1;
	uint64_t hint = 2;
	long r;

	r = CALL(dup, f);
	CALL(dup3, f, 50, O_CLOEXEC);
#ifdef SYS_dup2
	CALL(dup2, f, 51);
#endif
	CALL(close, r);
	CALL(fcntl, f, F_DUPFD, 60);
	CALL(fcntl, f, F_DUPFD_CLOEXEC, 61);
	CALL(fcntl, f, F_GETFD);
	CALL(fcntl, f, F_SETFD, 1);
	CALL(fcntl, f, F_GETFL);
	CALL(fcntl, f, F_SETFL, O_APPEND);
	CALL(fcntl, f, F_SETFL, 0);
	CALL(fcntl, f, F_SETLK, P(&l));
	mem(2, &l, sizeof(l));
	CALL(fcntl, f, F_SETLKW, P(&l));
	mem(2, &l, sizeof(l));
	CALL(fcntl, f, F_GETLK, P(&got));
	mem(2, &got, sizeof(got));
	l.l_pid = 0;
	CALL(fcntl, f, F_OFD_SETLK, P(&l)); /* EAGAIN: the other lock is in its way */
	mem(2, &l, sizeof(l));
	CALL(fcntl, f, F_SETOWN_EX, P(owner));
	mem(2, owner, 8);
	CALL(fcntl, f, F_GETOWN_EX, P(owner));
	mem(2, owner, 8);
	r = CALL(fcntl, f, F_SET_RW_HINT, P(&hint));
	mem(2, &hint, 8);
	if (CALL(fcntl, f, F_GET_RW_HINT, P(&hint)) >= 0)
		mem(2, &hint, 8);
	CALL(flock, f, 2);
	CALL(flock, f, 8);
	/* ioctl: requests that say of themselves what they move, and others */
	if (CALL(ioctl, f, 0x541b /* FIONREAD */, P(&n)) >= 0)
		mem(2, &n, 4);
	n = 0;
	CALL(ioctl, f, 0x5421 /* FIONBIO */, P(&n));
	mem(2, &n, 4);
	CALL(ioctl, f, 0x5451 /* FIOCLEX */);
	if (CALL(ioctl, f, 0x80086601 /* FS_IOC_GETFLAGS */, P(&n)) >= 0)
		mem(2, &n, 4);
	CALL(ioctl, f, 0x40086602 /* FS_IOC_SETFLAGS */, P(&n));
	mem(2, &n, 4);
	unsigned char fsx[28] = {0};
	if (CALL(ioctl, f, 0x801c581f /* FS_IOC_FSGETXATTR */, P(fsx)) >= 0)
		mem(2, fsx, 28);
	CALL(ioctl, f, 0x40049409 /* FICLONE */, 50); /* another descriptor of the file: EINVAL, or no such call */
	struct {
		int64_t src;
		uint64_t off, len, dst;
	} clone = {50, 0, 0, 1 << 20};
	CALL(ioctl, f, 0x4020940d /* FICLONERANGE */, P(&clone));
	mem(2, &clone, sizeof(clone));
	struct {
		uint64_t start, length;
		uint32_t flags, mapped, count, zero;
		uint64_t extents[8][7];
	} map = {.length = ~0ull, .count = 8};
	if (CALL(ioctl, f, 0xc020660b /* FS_IOC_FIEMAP */, P(&map)) >= 0)
		mem(2, &map, 32 + 56 * map.mapped);
	else
		mem(2, &map, 32);
	map.count = map.mapped = 0;
	CALL(ioctl, f, 0xc020660b, P(&map)); /* only counts */
	mem(2, &map, 32);
	struct {
		uint64_t off, len;
		uint16_t count, zero;
		uint32_t zero2;
		struct {
			int64_t fd;
			uint64_t off, deduped;
			int32_t status;
			uint32_t zero;
		} to[2];
	} dedupe = {0, 4096, 2, 0, 0, {{50, 4096, 0, 0, 0}, {51, 8192, 0, 0, 0}}};
	r = CALL(ioctl, f, 0xc0189436 /* FIDEDUPERANGE */, P(&dedupe));
	if (r >= 0)
		mem(2, &dedupe, sizeof(dedupe)), fd(50), fd(51);
	else
		mem(2, &dedupe, 24);
	CALL(ioctl, f, 0x5401 /* TCGETS: ENOTTY */, P(buf));
	CALL(ioctl, f, 0x12345678, 42); /* no such request; its encoding says that it reads 0x234 bytes */
	CALL(close_range, 50, 51, 0);
}

static void attributes(int f)
{
	struct stat st;
	struct statfs fs;
	struct statx sx;
	struct utimbuf ut = {1000, 2000};
	struct timeval tv[2] = {{1, 2}, {3, 4}};
	struct timespec ts[2] = {{5, 6}, {7, 8}};
	long r;

	CALL(fstat, f, P(&st));
	mem(1, &st, sizeof(st));
	CALL(newfstatat, AT_FDCWD, P("file"), P(&st), 0);
	path(1, "file"), mem(2, &st, sizeof(st));
	CALL(newfstatat, AT_FDCWD, P("nothing"), P(&st), 0);
	path(1, "nothing");
	CALL(statx, AT_FDCWD, P("file"), 0, 0x7ff, P(&sx));
	path(1, "file"), mem(4, &sx, sizeof(sx));
	CALL(statfs, P("."), P(&fs));
	path(0, "."), mem(1, &fs, sizeof(fs));
	CALL(fstatfs, f, P(&fs));
	mem(1, &fs, sizeof(fs));
	CALL(faccessat, AT_FDCWD, P("file"), 4);
	path(1, "file");
	CALL(faccessat2, AT_FDCWD, P("file"), 4, 0x200);
	path(1, "file");
	CALL(fchmod, f, 0640);
	CALL(fchmodat, AT_FDCWD, P("file"), 0600);
	path(1, "file");
	CALL(fchmodat2, AT_FDCWD, P("file"), 0600, 0);
	path(1, "file");
	CALL(fchown, f, -1, -1);
	CALL(fchownat, AT_FDCWD, P("file"), -1, -1, AT_SYMLINK_NOFOLLOW);
	path(1, "file");
	CALL(utimensat, AT_FDCWD, P("file"), P(ts), 0);
	path(1, "file"), mem(2, ts, sizeof(ts));
#ifdef SYS_stat
	CALL(stat, P("file"), P(&st));
	path(0, "file"), mem(1, &st, sizeof(st));
	CALL(lstat, P("file"), P(&st));
	path(0, "file"), mem(1, &st, sizeof(st));
	CALL(access, P("file"), 0);
	path(0, "file");
	CALL(chmod, P("file"), 0600);
	path(0, "file");
	CALL(chown, P("file"), -1, -1);
	path(0, "file");
	CALL(lchown, P("file"), -1, -1);
	path(0, "file");
	CALL(utime, P("file"), P(&ut));
	path(0, "file"), mem(1, &ut, sizeof(ut));
	CALL(utimes, P("file"), P(tv));
	path(0, "file"), mem(1, tv, sizeof(tv));
	CALL(futimesat, AT_FDCWD, P("file"), P(tv));
	path(1, "file"), mem(2, tv, sizeof(tv));
	if (CALL(ustat, st.st_dev, P(buf)) >= 0)
		mem(1, buf, 32);
#endif
	CALL(umask, 022);
	CALL(fsetxattr, f, P("user.a"), P("value"), 5, 0);
	text(1, "user.a"), mem(2, "value", 5);
	CALL(setxattr, P("file"), P("user.b"), P("other"), 5, 0);
	path(0, "file"), text(1, "user.b"), mem(2, "other", 5);
	CALL(lsetxattr, P("file"), P("user.c"), P(""), 0, 0);
	path(0, "file"), text(1, "user.c");
	if ((r = CALL(fgetxattr, f, P("user.a"), P(buf), 100)) >= 0)
		text(1, "user.a"), mem(2, buf, r);
	if ((r = CALL(getxattr, P("file"), P("user.b"), P(buf), 100)) >= 0)
		path(0, "file"), text(1, "user.b"), mem(2, buf, r);
	if ((r = CALL(lgetxattr, P("file"), P("user.b"), P(buf), 0)) >= 0) /* only the size */
		path(0, "file"), text(1, "user.b");
	r = CALL(listxattr, P("file"), P(buf), 100);
	path(0, "file"), mem(1, buf, r);
	r = CALL(llistxattr, P("file"), P(buf), 100);
	path(0, "file"), mem(1, buf, r);
	r = CALL(flistxattr, f, P(buf), 100);
	mem(1, buf, r);
	struct {
		uint64_t value;
		uint32_t size, flags;
	} xa = {P("at"), 2, 0};
	r = CALL(setxattrat, AT_FDCWD, P("file"), 0, P("user.d"), P(&xa), sizeof(xa));
	path(1, "file"), text(3, "user.d"), mem(4, &xa, 16), mem(4 | TARGET, "at", 2);
	xa.value = P(buf), xa.size = 100;
	r = CALL(getxattrat, AT_FDCWD, P("file"), 0, P("user.d"), P(&xa), sizeof(xa));
	path(1, "file"), text(3, "user.d");
	if (r >= 0)
		mem(4, &xa, 16), mem(4 | TARGET, buf, r);
	r = CALL(listxattrat, AT_FDCWD, P("file"), 0, P(buf), 100);
	path(1, "file");
	if (r > 0)
		mem(3, buf, r);
	CALL(removexattrat, AT_FDCWD, P("file"), 0, P("user.d"));
	path(1, "file"), text(3, "user.d");
	CALL(removexattr, P("file"), P("user.b"));
	path(0, "file"), text(1, "user.b");
	CALL(lremovexattr, P("file"), P("user.c"));
	path(0, "file"), text(1, "user.c");
	CALL(fremovexattr, f, P("user.a"));
	text(1, "user.a");
	unsigned char fa[24] = {0};
	r = CALL(file_getattr, AT_FDCWD, P("file"), P(fa), 24, 0);
	path(1, "file");
	if (r >= 0)
		mem(2, fa, 24);
	CALL(file_setattr, AT_FDCWD, P("file"), P(fa), 24, 0);
	path(1, "file"), mem(2, fa, 24);
}

static void names(void)
{
	struct {
		uint32_t bytes;
		int32_t type;
		unsigned char handle[128];
	} h = {0};
	int mount, d;
	long r;

	CALL(mkdirat, AT_FDCWD, P("dir"), 0700);
	path(1, "dir");
	CALL(linkat, AT_FDCWD, P("file"), AT_FDCWD, P("dir/link"), 0);
	path(1, "file"), path(3, "dir/link");
	CALL(symlinkat, P("target"), AT_FDCWD, P("dir/sym"));
	text(0, "target"), path(2, "dir/sym");
	r = CALL(readlinkat, AT_FDCWD, P("dir/sym"), P(buf), 100);
	path(1, "dir/sym"), mem(2, buf, r);
	CALL(mknodat, AT_FDCWD, P("fifo"), S_IFIFO | 0600, 0);
	path(1, "fifo");
	CALL(renameat2, AT_FDCWD, P("fifo"), AT_FDCWD, P("pipe"), 1);
	path(1, "fifo"), path(3, "pipe");
	CALL(renameat, AT_FDCWD, P("pipe"), AT_FDCWD, P("fifo"));
	path(1, "pipe"), path(3, "fifo");
	d = CALL(openat, AT_FDCWD, P("dir"), O_RDONLY | O_DIRECTORY, 0);
	path(1, "dir");
	r = CALL(getdents64, d, P(buf), sizeof(buf));
	mem(1, buf, r);
	CALL(lseek, d, 0, SEEK_SET);
#ifdef SYS_getdents
	r = CALL(getdents, d, P(buf), sizeof(buf));
	mem(1, buf, r);
#endif
	CALL(unlinkat, d, P("sym"), 0);
	path(1, "sym");
	CALL(fchdir, d);
	CALL(chdir, P(".."));
	path(0, "..");
	r = CALL(getcwd, P(buf), sizeof(buf));
	mem(0, buf, r);
	CALL(unlinkat, AT_FDCWD, P("fifo"), 0);
	path(1, "fifo");
	CALL(name_to_handle_at, AT_FDCWD, P("file"), P(&h), P(&mount), 0); /* EOVERFLOW: how long is it? */
	path(1, "file"), mem(2, &h, 8);
	if (CALL(name_to_handle_at, AT_FDCWD, P("file"), P(&h), P(&mount), 0) >= 0) {
		path(1, "file"), mem(2, &h, 8 + h.bytes), mem(3, &mount, 4);
		r = CALL(open_by_handle_at, AT_FDCWD, P(&h), O_RDONLY);
		mem(1, &h, r >= 0 ? 8 + h.bytes : 8);
	} else
		path(1, "file"), mem(2, &h, 8);
	CALL(open_by_handle_at, d, P(&h), O_RDONLY);
	mem(1, &h, 8 + h.bytes);
	CALL(close, d);
	CALL(chroot, P("nothing"));
	path(0, "nothing");
#ifdef SYS_mkdir
	CALL(mkdir, P("d2"), 0700);
	path(0, "d2");
	CALL(rmdir, P("d2"));
	path(0, "d2");
	CALL(link, P("file"), P("l2"));
	path(0, "file"), path(1, "l2");
	CALL(rename, P("l2"), P("l3"));
	path(0, "l2"), path(1, "l3");
	CALL(unlink, P("l3"));
	path(0, "l3");
	CALL(symlink, P("t"), P("s2"));
	text(0, "t"), path(1, "s2");
	r = CALL(readlink, P("s2"), P(buf), 100);
	path(0, "s2"), mem(1, buf, r);
	CALL(mknod, P("n2"), S_IFREG | 0600, 0);
	path(0, "n2");
	CALL(sysfs, 1, P("ext4"));
	text(1, "ext4");
	CALL(sysfs, 3);
#endif
	CALL(lookup_dcookie, 0, P(buf), 100);
}

int main(void)
{
	struct open_how how = {.flags = O_RDONLY};
	long r, f;

	self = getpid();
	start();
	f = CALL(openat, AT_FDCWD, P("file"), O_RDWR | O_CREAT | O_TRUNC, 0644);
	path(1, "file");
	data(f);
	copies(f);
	control(f);
	attributes(f);
#ifdef SYS_open
	r = CALL(open, P("file"), O_RDONLY, 0);
	path(0, "file");
	CALL(close, r);
#endif
	r = CALL(openat2, AT_FDCWD, P("file"), P(&how), sizeof(how));
	path(1, "file"), mem(2, &how, sizeof(how));
	CALL(close, r);
	names();
	r = CALL(memfd_create, P("memory"), 1);
	text(0, "memory");
	CALL(close, r);
	CALL(sync);
	return finish();
}
