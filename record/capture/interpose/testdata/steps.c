// SPDX-License-Identifier: Apache-2.0
// Makes calls with a signal at each instruction of the code that the recorder has put into the process, by a hardware
// breakpoint. argv: directory, a file of the offsets of the instructions, the offset of the entry, where the slot has the
// entry's address, and "jump" if the handler leaves by siglongjmp. Descriptors: 10 a log, 11 the handler's log, 12 a
// file of bytes, 14 and 15 a pipe. Without the file it makes each call three times.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static volatile long hits, bad, jump, kind;
static sigjmp_buf env;
static long made[16];

/* breakpoints switches the breakpoint on or off. The place of the call cannot be patched: there are bytes around that are
 * no instructions. So the call itself does not come by the code. */
static void breakpoints(int on)
{
	long nr = SYS_prctl;
	__asm__ volatile("jmp 1f\n .skip 300, 0x06\n 1: syscall\n jmp 2f\n .skip 300, 0x06\n 2:"
	                 : "+a"(nr) : "D"(on ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE)
	                 : "rcx", "r11", "memory");
	if (nr)
		bad++;
}

static void handler(int sig)
{
	int e = errno;
	breakpoints(0);
	hits++;
	write(11, "h", 1);
	errno = e;
	if (jump)
		siglongjmp(env, 1);
}

static volatile int hit;

static void notes(int sig)
{
	breakpoints(0);
	hit = 1;
}

static __attribute__((noinline)) void here(void) { __asm__ volatile(""); }

/* watch makes a breakpoint, which is off, and sends this thread a signal. */
static int watch(struct perf_event_attr *attr, unsigned long at, int sig)
{
	attr->bp_addr = at;
	int fd = syscall(SYS_perf_event_open, attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		perror("perf_event_open");
		exit(3);
	}
	struct f_owner_ex owner = {F_OWNER_TID, getpid()};
	fcntl(fd, F_SETOWN_EX, &owner);
	fcntl(fd, F_SETSIG, sig);
	fcntl(fd, F_SETFL, O_ASYNC);
	return fd;
}

static void place(int fd, int at)
{
	dup2(fd, at);
	close(fd);
}

static void create(const char *dir, const char *name, int at)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	place(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), at);
}

static void want(long got, long right)
{
	if (got != right) {
		bad++;
		dprintf(2, "call %ld returned %ld, want %ld, errno %d\n", kind, got, right, errno);
	}
}

enum { KINDS = 9 };

/* one makes a call of a kind. */
static void one(int kind)
{
	static long n;
	char b[64];
	struct iovec v[2] = {{b, 3}, {b + 3, 5}};
	struct timespec ts = {0, 1};
	sigset_t set, old;
	switch (kind) {
	case 0:
		n++;
		want(write(10, &n, 8), 8);
		break;
	case 1:
		want(pread(12, b, 64, 100), 64);
		want(b[5], 105);
		break;
	case 2:
		n++;
		memcpy(b, &n, 8);
		want(writev(10, v, 2), 8);
		break;
	case 3:
		want(write(15, "0123456", 7), 7);
		break;
	case 4: /* after 3 */
		want(read(14, b, 64), 7);
		want(memcmp(b, "0123456", 7), 0);
		break;
	case 5:
		want(lseek(12, 77, SEEK_SET), 77);
		break;
	case 6:
		sigemptyset(&set), sigaddset(&set, SIGUSR2);
		want(sigprocmask(SIG_BLOCK, &set, &old), 0);
		want(sigismember(&old, SIGUSR2) + 2 * sigismember(&old, SIGUSR1), 0);
		want(sigprocmask(SIG_SETMASK, &old, 0), 0);
		break;
	case 7:
		want(dup2(12, 13), 13);
		want(close(13), 0);
		break;
	case 8:
		want(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, 0), 0);
		break;
	}
}

int main(int argc, char **argv)
{
	char pattern[256];
	int p[2];
	create(argv[1], "log", 10);
	create(argv[1], "handler", 11);
	create(argv[1], "bytes", 12);
	pipe(p), place(p[0], 14), place(p[1], 15);
	for (int i = 0; i < 256; i++)
		pattern[i] = i;
	pwrite(12, pattern, sizeof pattern, 0);
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
	sigaction(SIGUSR1, &a, 0);
	FILE *offsets = fopen(argv[2], "r");
	for (int i = 0; i < 3; i++)
		for (kind = 0; kind < KINDS; kind++)
			one(kind), made[kind]++;
	raise(SIGUSR1);
	if (!offsets) {
		printf("hits %ld bad %ld\n", hits, bad);
		return 0;
	}
	hits = 0;
	jump = argc > 5;
	unsigned long entry, slot = atol(argv[4]);
	__asm__ volatile("mov %%gs:(%1), %0" : "=r"(entry) : "r"(slot));
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof attr, .bp_type = HW_BREAKPOINT_X, .bp_len = sizeof(long),
		.sample_period = 1, .wakeup_events = 1, .disabled = 1, .exclude_kernel = 1, .exclude_hv = 1,
	};
	sigaction(SIGUSR2, &(struct sigaction){.sa_handler = notes}, 0);
	int probe = watch(&attr, (unsigned long)here, SIGUSR2);
	breakpoints(1);
	here();
	breakpoints(0);
	close(probe);
	if (!hit) { /* some hypervisors let them be set, and do nothing */
		printf("they are set, but not hit\n");
		return 3;
	}
	long off, places = 0;
	while (fscanf(offsets, "%ld", &off) == 1) {
		int fd = watch(&attr, entry - atol(argv[3]) + off, SIGUSR1);
		long before = hits;
		for (kind = 0; kind < KINDS; kind++) {
			if (sigsetjmp(env, 1) == 0) {
				breakpoints(1);
				one(kind), made[kind]++;
			} else if (kind == 3 || kind == 4) {
				int left;
				char b[64];
				ioctl(14, FIONREAD, &left);
				if (kind == 3 && left == 0)
					write(15, "0123456", 7);
				if (kind == 4 && left > 0)
					read(14, b, sizeof b);
			}
			breakpoints(0);
		}
		places += hits > before;
		close(fd);
	}
	printf("hits %ld bad %ld places %ld writes %ld\n", hits, bad, places, made[0] + made[2]);
	return 0;
}
