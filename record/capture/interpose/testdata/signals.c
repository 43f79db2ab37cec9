// SPDX-License-Identifier: Apache-2.0
// Makes calls while timers interrupt it, and says how many. argv: directory, rounds, microseconds
// between signals, and "jump" if handlers leave by siglongjmp. Descriptors: 10 a log, 11 the handlers' log, 12 and 13 a
// pipe, 14 and 15 one that is read when it is empty, 16 a file of bytes 0 to 255, repeated.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t blocking, jump;
static volatile long us, i, handled, reads, writes, preads, sleeps, waits, woken, interrupted, bad;
static sigjmp_buf env;

static timer_t also;

/* again asks for the next signal of a kind, later if there were few rounds since the last: so the program gets on,
 * however slow the machine is. */
static void again(int sig)
{
	static long last[2] = {-8, -8}, wait[2];
	int k = sig == SIGUSR1;
	long least = us + us * k;
	wait[k] = i < last[k] + 8 ? 2 * wait[k] : wait[k] / 2;
	wait[k] = wait[k] < least || !us ? least : wait[k] > 100000 ? 100000 : wait[k];
	last[k] = i;
	if (k) {
		struct itimerspec next = {{0, 0}, {0, wait[k] * 1000}};
		timer_settime(also, 0, &next, 0);
	} else {
		struct itimerval next = {{0, 0}, {0, wait[k]}};
		setitimer(ITIMER_REAL, &next, 0);
	}
}

static void handler(int sig)
{
	int e = errno;
	handled++;
	write(11, sig == SIGALRM ? "a" : "u", 1);
	if (blocking) {
		blocking = 0;
		write(15, "b", 1);
	}
	again(sig);
	errno = e;
	if (jump && handled % 8 == 0)
		siglongjmp(env, 1);
}

static void place(int fd, int at)
{
	dup2(fd, at);
	close(fd);
}

static int create(const char *dir, const char *name, int at)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	place(open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600), at);
}

int main(int argc, char **argv)
{
	long rounds = atol(argv[2]);
	unsigned char b[256], pattern[4096];
	int p[2], futex = 0;
	create(argv[1], "log", 10);
	create(argv[1], "handlers", 11);
	pipe2(p, O_NONBLOCK), place(p[0], 12), place(p[1], 13);
	pipe(p), place(p[0], 14), place(p[1], 15);
	create(argv[1], "bytes", 16);
	for (int k = 0; k < sizeof pattern; k++)
		pattern[k] = k;
	write(16, pattern, sizeof pattern);

	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
	sigaddset(&a.sa_mask, SIGUSR1);
	sigaction(SIGALRM, &a, 0);
	memset(&a.sa_mask, 0, sizeof a.sa_mask);
	a.sa_flags = 0;
	sigaddset(&a.sa_mask, SIGALRM);
	sigaction(SIGUSR1, &a, 0);
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_create(CLOCK_MONOTONIC, &ev, &also);
	jump = argc > 4;
	us = atol(argv[3]);
	sigsetjmp(env, 1);
	again(SIGALRM);
	again(SIGUSR1);
	while (i < rounds) {
		long n = i++;
		if (write(10, &n, 8) == 8)
			writes++;
		if (write(13, &n, 8) == 8)
			writes++;
		ssize_t got = read(12, b, 8);
		if (got == 8)
			reads++;
		if (!jump && (got != 8 || memcmp(b, &n, 8)))
			bad++;
		got = pread(16, b, 64, n % 4000);
		preads++;
		if (got != 64 || b[0] != (unsigned char)(n % 4000))
			bad++;
		if (n % 32 == 0) {
			struct timespec ts = {0, 1000};
			syscall(SYS_nanosleep, &ts, &ts);
			sleeps++;
			ts.tv_sec = 0, ts.tv_nsec = 1000;
			syscall(SYS_futex, &futex, FUTEX_WAIT, 0, &ts, 0, 0);
			waits++;
		}
		if (n % 64 == 0 && !jump) {
			blocking = 1;
			while ((got = read(14, b, 1)) < 0 && errno == EINTR)
				interrupted++;
			if (got != 1)
				bad++;
			woken++;
		}
	}
	us = 0;
	again(SIGALRM);
	again(SIGUSR1);
	int left;
	ioctl(12, FIONREAD, &left);
	printf("writes %ld reads %ld preads %ld sleeps %ld waits %ld woken %ld interrupted %ld handled %ld left %d bad %ld\n",
	       writes, reads, preads, sleeps, waits, woken, interrupted, handled, left, bad);
	return 0;
}
