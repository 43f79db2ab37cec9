// SPDX-License-Identifier: Apache-2.0
// threads8 MODE FILE: eight threads write one file at the same time.
//
//   pwrite  each at its own offsets, through one descriptor
//   write   at the position that all share, through one descriptor
//   append  each through its own descriptor, opened with O_APPEND
//
// In the last two the kernel decides who comes next, so only the recording
// knows what the file looks like.
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { threads = 8, records = 150, slot = 512 };

static const char *mode, *file;
static int shared;
static pthread_barrier_t start;

static void *writer(void *arg) {
	int me = (int)(long)arg, fd = shared;
	char b[slot];
	if (mode[0] == 'a' && (fd = open(file, O_WRONLY | O_APPEND)) < 0)
		err(1, "open %s", file);
	pthread_barrier_wait(&start);
	for (int i = 0; i < records; i++) {
		size_t n = mode[0] == 'p' ? slot : 20 + (me * 61 + i * 37) % (slot - 20);
		memset(b, 'a' + me, n);
		int k = snprintf(b, sizeof b, "%d.%d", me, i);
		b[k] = ' ';
		b[n - 1] = '\n';
		ssize_t r = mode[0] == 'p' ? pwrite(fd, b, n, (off_t)(i * threads + me) * slot) : write(fd, b, n);
		if (r != (ssize_t)n)
			err(1, "write %s", file);
	}
	if (fd != shared)
		close(fd);
	return NULL;
}

int main(int argc, char **argv) {
	pthread_t t[threads];
	if (argc != 3)
		errx(2, "usage: threads8 pwrite|write|append FILE");
	mode = argv[1];
	file = argv[2];
	if ((shared = open(file, O_RDWR | O_CREAT | O_TRUNC, 0644)) < 0)
		err(1, "open %s", file);
	pthread_barrier_init(&start, NULL, threads);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, writer, (void *)i))
			errx(1, "pthread_create");
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	if (fsync(shared) || close(shared))
		err(1, "close %s", file);
	return 0;
}
