// stress DIR BIG SMALL: 16 threads at once; eight write and read back BIG times 1 MiB,
// eight SMALL times one byte. It prints "fine" if no call failed, was interrupted or read
// what was not written, and no signal came.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { threads = 16, big = 1 << 20 };
static atomic_int bad;
static const char *dir;
static long counts[2];

static void signalled(int sig) { bad = 100 + sig; }

static void *work(void *arg)
{
	long id = (long)arg, size = id % 2 ? 1 : big;
	char name[4096], *out = malloc(big), *in = malloc(big);
	snprintf(name, sizeof name, "%s/s%ld", dir, id);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	for (long i = 0; i < counts[id % 2]; i++) {
		memset(out, (int)(i * 7 + id), size);
		if (pwrite(fd, out, size, i % 4 * size) != size || pread(fd, in, size, i % 4 * size) != size || memcmp(in, out, size))
			bad = 1;
	}
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t[threads];
	if (argc != 4)
		return 2;
	dir = argv[1];
	counts[0] = atol(argv[2]);
	counts[1] = atol(argv[3]);
	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGKILL && sig != SIGSTOP && sig != SIGWINCH)
			signal(sig, signalled);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&t[i], 0, work, (void *)i))
			return 3;
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	if (bad)
		printf("bad %d\n", bad);
	else
		puts("fine");
	return bad ? 1 : 42;
}
