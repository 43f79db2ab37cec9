/* A 32-bit program: the same calls by other numbers, with arguments in two registers
 * and, in part, other structures. */
#include "expect.h"
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* AS is a call that is recorded as another, with other arguments. */
#define AS(op, name, expected, ...) as(#op, expected, SYS_##name, (long[6]){__VA_ARGS__})
static long as(const char *op, const char *expected, long nr, const long a[6])
{
	size_t at = length;
	long r = call_number(op, nr, a);
	length = at;
	say("call %s %ld %ld %s\n", op, nr, r, expected);
	return r;
}

static char buf[300 << 10], name[200];
static const char *shown(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(name, sizeof(name), format, ap);
	va_end(ap);
	return name;
}

int main(void)
{
	struct iovec v[2] = {{"abc", 3}, {"defgh", 5}}, o[2] = {{buf, 3}, {buf + 100, 50}};
	struct pollfd pf = {1, POLLOUT, 0};
	long long off = 0;
	struct {
		long long sec, nsec;
	} ts = {0, 1};
	struct sockaddr sa = {AF_UNIX, ""};
	int s[2], status;
	long f, r, pid;

	start();
	f = CALL(openat, AT_FDCWD, P("file"), O_RDWR | O_CREAT | O_TRUNC | O_LARGEFILE, 0644);
	path(1, "file");
	CALL(write, f, P("hello"), 5);
	mem(1, "hello", 5);
	CALL(writev, f, P(v), 2);
	mem(1, "abcdefgh", 8);
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = i * 3 + i / 250;
	struct iovec large = {buf, sizeof(buf)};
	CALL(writev, f, P(&large), 1);
	mem(1, buf, sizeof(buf));
	AS(pwrite64, pwrite64, shown("%lx %lx 3 100000002 0 0", f, P("far")), f, P("far"), 3, 2, 1);
	mem(1, "far", 3);
	AS(pread64, pread64, shown("%lx %lx 3 100000002 0 0", f, P(buf)), f, P(buf), 3, 2, 1);
	mem(1, "far", 3);
	AS(pwritev, pwritev, shown("%lx %lx 2 100000000 0 0", f, P(v)), f, P(v), 2, 0, 1);
	mem(1, "abcdefgh", 8);
	CALL(lseek, f, 0, SEEK_SET);
	r = CALL(readv, f, P(o), 2);
	memmove(buf + 3, buf + 100, 50);
	mem(1, buf, r);
	AS(lseek, lseek, shown("%lx fffffffffffffffb 1 0 0 0", f), f, -5, SEEK_CUR);
	size_t at = length;
	AS(lseek, _llseek, "", f, 1, 7, P(&off), SEEK_SET);
	length = at;
	say("call lseek %d 4294967303 %lx 100000007 0 0 0 0\n", SYS__llseek, f);
	AS(ftruncate, ftruncate64, shown("%lx 200000005 0 0 0 0", f), f, 5, 2);
	AS(truncate, truncate64, shown("%lx 100000 0 0 0 0", P("file")), P("file"), 0x100000, 0);
	path(0, "file");
	AS(fallocate, fallocate, shown("%lx 0 1000 2000 0 0", f), f, 0, 0x1000, 0, 0x2000, 0);
	AS(fadvise64, fadvise64_64, shown("%lx 100000001 2 4 0 0", f), f, 1, 1, 2, 0, 4);
	CALL(fsync, f);
	AS(fcntl, fcntl64, shown("%lx 3 0 0 0 0", f), f, F_GETFL);
	r = AS(fcntl, fcntl64, shown("%lx 0 32 0 0 0", f), f, F_DUPFD, 50);
	CALL(close, r);
	AS(fstat, fstat64, shown("%lx %lx 0 0 0 0", f, P(buf)), f, P(buf));
	AS(newfstatat, fstatat64, shown("ffffff9c %lx %lx 0 0 0", P("file"), P(buf)), AT_FDCWD, P("file"), P(buf), 0);
	path(1, "file");
	CALL(statx, AT_FDCWD, P("file"), 0, 0x7ff, P(buf));
	path(1, "file"), mem(4, buf, 256);
	AS(fstatfs, fstatfs64, shown("%lx %lx 0 0 0 0", f, P(buf)), f, 84, P(buf));
	AS(fchown, fchown32, shown("%lx ffffffff ffffffff 0 0 0", f), f, -1, -1);
	AS(chown, chown, shown("%lx ffffffff ffffffff 0 0 0", P("file")), P("file"), 0xffff, 0xffff);
	path(0, "file");
	CALL(fsetxattr, f, P("user.a"), P("value"), 5, 0);
	text(1, "user.a"), mem(2, "value", 5);
	CALL(mkdir, P("dir"), 0700);
	path(0, "dir");
	CALL(rename, P("dir"), P("dir2"));
	path(0, "dir"), path(1, "dir2");
	r = CALL(open, P("dir2"), O_RDONLY | O_DIRECTORY);
	path(0, "dir2");
	r = CALL(getdents64, r, P(buf), sizeof(buf));
	mem(1, buf, r);
	r = CALL(getcwd, P(buf), sizeof(buf));
	mem(0, buf, r);
	CALL(pipe2, P(s), 0);
	mem(0, s, 8), fd(s[0]), fd(s[1]);
	AS(utimensat, utimensat_time64, shown("ffffff9c %lx %lx 0 0 0", P("file"), 0l), AT_FDCWD, P("file"), 0, 0);
	path(1, "file");
	AS(clock_nanosleep, clock_nanosleep_time64, shown("1 0 %lx 0 0 0", P(&ts)), 1, 0, P(&ts), 0);
	mem(2, &ts, 16);
	CALL(poll, P(&pf), 1, 0);
	mem(0, &pf, 8);
	r = CALL(socket, AF_UNIX, SOCK_STREAM, 0);
	CALL(connect, r, P(&sa), 2);
	mem(1, &sa, 2);
	AS(getuid, getuid32, "0 0 0 0 0 0");
	CALL(execve, P("/nothing"), P(((char *[]){"a", "b c", 0})), 0);
	path(0, "/nothing"), mem(1, "a\0b c", 5);
	pid = CALL(clone, SIGCHLD);
	if (!pid)
		_exit(7);
	AS(wait4, waitpid, shown("%lx %lx 0 0 0 0", pid, P(&status)), pid, P(&status), 0);
	mem(1, &status, 4);
	/* not told by a row: a name and raw arguments */
	AS(syscall, select, "0 0 0 0 0 0");
	AS(syscall, utimensat, shown("ffffff9c %lx 0 0 0 0", P("file")), AT_FDCWD, P("file"), 0, 0);
	return finish();
}
