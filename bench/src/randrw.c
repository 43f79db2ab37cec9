// SPDX-License-Identifier: Apache-2.0
// randrw THREADS CALLS SIZE BLOCK DIR: each thread makes so many random preads and pwrites
// of BLOCK bytes in a file of its own of SIZE bytes, which it writes first, and the rate of
// all these calls is printed. What a replay is measured against: it does them all, too.
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { max_threads = 64 };

static long calls, size, block;
static const char *dir;
static pthread_barrier_t ready;

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void *run(void *arg) {
	static const char zeros[1 << 20];
	long id = (long)arg;
	char name[4096];
	snprintf(name, sizeof name, "%s/f%ld", dir, id);
	int fd = open(name, O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		err(1, "open %s", name);
	for (long at = 0; at < size; at += sizeof zeros)
		if (pwrite(fd, zeros, sizeof zeros, at) < 0)
			err(1, "fill %s", name);
	char *buf = aligned_alloc(4096, (block + 4095) / 4096 * 4096);
	memset(buf, 'a' + id, block);
	uint64_t x = 88172645463325252ull + id * 77; // xorshift64
	pthread_barrier_wait(&ready);
	for (long i = 0; i < calls; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		off_t at = (x >> 8) % (size / block) * block;
		if (x & 1) {
			if (pread(fd, buf, block, at) != block)
				err(1, "pread");
		} else {
			memcpy(buf, &x, sizeof x);
			if (pwrite(fd, buf, block, at) != block)
				err(1, "pwrite");
		}
	}
	return NULL;
}

int main(int argc, char **argv) {
	if (argc != 6)
		errx(2, "usage: randrw THREADS CALLS SIZE BLOCK DIR");
	int threads = atoi(argv[1]);
	calls = atol(argv[2]), size = atol(argv[3]), block = atol(argv[4]), dir = argv[5];
	if (threads < 1 || threads > max_threads || calls < 1 || block < 8 || size < block)
		errx(2, "1 to %d threads, a call or more, blocks of 8 bytes or more that fit the file", max_threads);
	pthread_t t[max_threads];
	pthread_barrier_init(&ready, NULL, threads);
	double begin = now();
	for (long i = 0; i < threads; i++)
		if (pthread_create(t + i, NULL, run, (void *)i))
			errx(1, "no thread");
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	printf("%.0f\n", threads * calls / (now() - begin));
	return 0;
}
