// SPDX-License-Identifier: Apache-2.0
// Unmaps what it finds in /proc/self/maps, as argv[1] says: all that it does not need itself, or what is executable and
// of no file. Before and after, it writes to descriptor 1. It uses no library after that.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static char text[1 << 20];

static long call(long nr, long a, long b, long c)
{
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}

static unsigned long number(char **s)
{
	for (unsigned long v = 0;; ++*s) {
		char c = **s;
		if (c >= '0' && c <= '9')
			v = v * 16 + c - '0';
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + c - 'a' + 10;
		else
			return v;
	}
}

static int has(const char *s, const char *part)
{
	for (; *s && *s != '\n'; s++) {
		int i = 0;
		while (part[i] && s[i] == part[i])
			i++;
		if (!part[i])
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 50; i++)
		call(SYS_write, 1, (long)"a", 1);
	long fd = call(SYS_open, (long)"/proc/self/maps", O_RDONLY, 0), n = 0, k;
	while ((k = call(SYS_read, fd, (long)text + n, sizeof text - n - 1)) > 0)
		n += k;
	unsigned long stack = (unsigned long)&n, data = (unsigned long)text;
	for (char *at = text; *at; at++) {
		unsigned long from = number(&at), to = (at++, number(&at));
		char *perms = at + 1;
		int keeps = has(at, "/unmapped") || has(at, "[v") || has(at, "[heap]") || (stack >= from && stack < to) ||
			(data >= from && data < to);
		if (argv[1][0] == 'e')
			keeps = has(at, "[v") || perms[2] != 'x' || has(at, "/");
		if (!keeps)
			call(SYS_munmap, from, to - from, 0);
		while (*at != '\n')
			at++;
	}
	for (int i = 0; i < 50; i++)
		call(SYS_write, 1, (long)"b", 1);
	call(SYS_exit_group, 0, 0, 0);
}
