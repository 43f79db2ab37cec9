// flatout DIR SECONDS [blocked]: 8 threads write and read back blocks as fast as they can, and a
// ninth waits in calls that signals would interrupt. It ends with "fine" if no call
// failed, was interrupted, or read what was not written, and no signal came. It handles all signals, or, with "blocked", blocks all.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { threads = 8, bytes = 8192 };
static atomic_int bad, stop;
static atomic_long rounds;
static const char *dir;

static void signalled(int sig) { bad = 100 + sig; }

static void *work(void *arg)
{
	long id = (long)arg;
	char name[4096], out[bytes], in[bytes];
	snprintf(name, sizeof name, "%s/f%ld", dir, id);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	for (long i = 0; !stop; i++) {
		memset(out, (int)(i * 7 + id), bytes);
		int n = i % 3 ? bytes : 1;
		if (pwrite(fd, out, n, i % 64 * bytes) != n || pread(fd, in, n, i % 64 * bytes) != n || memcmp(in, out, n))
			bad = 1;
		rounds++;
	}
	close(fd);
	return 0;
}

static void *wait_for(void *arg)
{
	int p[2];
	(void)arg;
	if (pipe(p))
		bad = 1;
	struct pollfd f = { .fd = p[0], .events = POLLIN };
	while (!stop) {
		struct timespec t = { 0, 20000000 };
		if (poll(&f, 1, 20) != 0 || nanosleep(&t, 0) != 0)
			bad = 3;
	}
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t[threads + 1];
	if (argc < 3)
		return 2;
	dir = argv[1];
	for (int s = 1; s < 32; s++)
		if (s != SIGKILL && s != SIGSTOP && s != SIGTERM && s != SIGCONT && s != SIGWINCH)
			signal(s, signalled);
	if (argc > 3) {
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, 0);
	}
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], 0, work, (void *)i);
	pthread_create(&t[threads], 0, wait_for, 0);
	struct timespec rest = { atof(argv[2]), (long)(atof(argv[2]) * 1e9) % 1000000000 };
	while (nanosleep(&rest, &rest) && errno == EINTR)
		bad = 3;
	stop = 1;
	for (int i = 0; i <= threads; i++)
		pthread_join(t[i], 0);
	if (bad)
		printf("bad %d\n", bad);
	else
		printf("fine\n");
	fprintf(stderr, "%ld rounds\n", (long)rounds);
	return bad;
}
