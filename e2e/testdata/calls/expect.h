/* Makes system calls and says, on standard output at the end, what a recording of
 * them has to have: one line per call, and lines of what belongs to it.
 *
 *   call NAME NUMBER RESULT ARG…    RESULT is negative of an error number, ? if anything is right
 *   path ARG HEX                    a path argument
 *   mem INDEX HEX                   other memory: INDEX is the argument, with the part << 4
 *   fd NUMBER                       a descriptor in the call's memory
 *
 * A call that was not made because the machine lacks it is a line "none NAME". */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BEFORE = 1 << 4, NAME = 2 << 4, DATA = 3 << 4, CONTROL = 4 << 4, TARGET = 5 << 4 };

static char said[4 << 20];
static size_t length;

static void say(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	length += vsnprintf(said + length, sizeof(said) - length, format, ap);
	va_end(ap);
}

static void hex(const void *p, size_t n)
{
	const unsigned char *b = p;
	for (size_t i = 0; i < n; i++)
		say("%02x", b[i]);
	say("\n");
}

static void mem(int index, const void *p, size_t n)
{
	say("mem %d ", index);
	hex(p, n);
}
static void path(int arg, const char *s)
{
	say("path %d ", arg);
	hex(s, strlen(s));
}
static void text(int arg, const char *s) { mem(arg, s, strlen(s)); }
static void fd(int n) { say("fd %d\n", n); }

/* P is a pointer as an argument. */
#define P(p) ((long)(uintptr_t)(p))

static long call_number(const char *name, long nr, const long a[6])
{
	long r = syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (r == -1)
		r = -errno;
	say("call %s %ld %ld", name, nr, r);
	for (int i = 0; i < 6; i++)
		say(" %lx", a[i]);
	say("\n");
	return r;
}
#define CALL(name, ...) call_number(#name, SYS_##name, (long[6]){__VA_ARGS__})

/* The calls between start and finish are those that count. */
#define MARK 500
static void start(void)
{
	memset(said, 0, sizeof(said));
	syscall(MARK);
}
static int finish(void)
{
	syscall(MARK);
	for (size_t done = 0; done < length;) {
		ssize_t n = write(1, said + done, length - done);
		if (n <= 0)
			return 1;
		done += n;
	}
	return 0;
}

/* Numbers that are newer than the C library's headers; the same everywhere. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_map_shadow_stack
#define SYS_map_shadow_stack 453
#endif
#ifndef SYS_futex_wake
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#endif
#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#endif
#ifndef SYS_lsm_get_self_attr
#define SYS_lsm_get_self_attr 459
#define SYS_lsm_set_self_attr 460
#define SYS_lsm_list_modules 461
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_getxattrat 464
#define SYS_listxattrat 465
#define SYS_removexattrat 466
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
#ifndef SYS_file_getattr
#define SYS_file_getattr 468
#define SYS_file_setattr 469
#endif
#ifndef SYS_listns
#define SYS_listns 470
#define SYS_rseq_slice_yield 471
#endif
