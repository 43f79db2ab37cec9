// SPDX-License-Identifier: Apache-2.0
/* Linux AIO by its system calls: single requests and batches, vectors, errors, and a
 * thread that reaps what another submits. Works in its working directory. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct iocb request(int op, int fd, void *buf, size_t n, long long off, uint64_t data)
{
	struct iocb c = {.aio_lio_opcode = op, .aio_fildes = fd, .aio_buf = (uintptr_t)buf, .aio_nbytes = n, .aio_offset = off, .aio_data = data};
	return c;
}

static void submit(aio_context_t ctx, struct iocb **list, long n, long want)
{
	long got = syscall(SYS_io_submit, ctx, n, list);
	if (got != want)
		err(1, "io_submit: %ld of %ld", got, n);
}

static void reap(aio_context_t ctx, long n, long long want)
{
	struct io_event ev[64];
	while (n > 0) {
		long got = syscall(SYS_io_getevents, ctx, 1, n < 64 ? n : 64, ev, 0);
		if (got < 0)
			err(1, "io_getevents");
		for (long i = 0; i < got; i++)
			if (want >= 0 ? ev[i].res != want : ev[i].res < 0)
				errx(1, "request %llu: %lld, want %lld", (unsigned long long)ev[i].data, (long long)ev[i].res, want);
		n -= got;
	}
}

static void one(aio_context_t ctx, struct iocb c, long long want)
{
	struct iocb *list[1] = {&c};
	submit(ctx, list, 1, 1);
	reap(ctx, 1, want);
}

static aio_context_t shared;
static void *reaper(void *n)
{
	reap(shared, (long)n, 4096);
	return 0;
}

int main(void)
{
	static char a[1 << 20], b[1 << 20], block[256][4096] __attribute__((aligned(4096)));
	aio_context_t ctx = 0;

	if (syscall(SYS_io_setup, 64, &ctx))
		err(1, "io_setup");
	int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (size_t i = 0; i < sizeof(a); i++)
		a[i] = (char)(i * 131 + (i >> 9) * 17);
	one(ctx, request(IOCB_CMD_PWRITE, fd, a, sizeof(a), 0, 1), sizeof(a));
	one(ctx, request(IOCB_CMD_PREAD, fd, b, 70000, 5, 2), 70000);
	one(ctx, request(IOCB_CMD_PREAD, fd, b, 4096, sizeof(a) - 10, 3), 10);
	one(ctx, request(IOCB_CMD_FSYNC, fd, 0, 0, 0, 4), 0);
	one(ctx, request(IOCB_CMD_FDSYNC, fd, 0, 0, 0, 5), 0);
	struct iovec v[3] = {{a, 100}, {a + 7, 0}, {a + 9, 50000}};
	one(ctx, request(IOCB_CMD_PWRITEV, fd, v, 3, 300000, 6), 50100);
	struct iovec u[3] = {{b, 100}, {b + 7, 0}, {b + 900, 50000}};
	one(ctx, request(IOCB_CMD_PREADV, fd, u, 3, 1000, 7), 50100);

	/* the second cannot be taken */
	struct iocb good = request(IOCB_CMD_PREAD, fd, b, 10, 0, 8), bad = request(IOCB_CMD_PREAD, 1000, b, 10, 0, 9);
	struct iocb *two[2] = {&good, &bad};
	submit(ctx, two, 2, 1);
	reap(ctx, 1, 10);
	close(fd);

	/* direct, in batches, reaped by another thread, the blocks in pages not yet touched */
	fd = open("direct", O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
	if (fd < 0)
		fd = open("direct", O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct iocb *c = mmap(0, 256 * sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *list[256];
	pthread_t t;
	if (syscall(SYS_io_setup, 256, &shared))
		err(1, "io_setup");
	for (int write = 1; write >= 0; write--) {
		pthread_create(&t, 0, reaper, (void *)256L);
		for (int i = 0; i < 256; i++) {
			if (write)
				memcpy(block[i], a + 97 * i, 4096);
			c[i] = request(write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD, fd, block[i], 4096, 4096LL * (i * 37 % 256), 100 + i);
			list[i] = &c[i];
		}
		for (int i = 0; i < 256; i += 32)
			submit(shared, list + i, 32, 32);
		pthread_join(t, 0);
	}

	/* not reaped: the context ends first */
	submit(shared, list, 1, 1);
	if (syscall(SYS_io_destroy, shared))
		err(1, "io_destroy");
	one(ctx, request(IOCB_CMD_PWRITE, fd, block[1], 4096, 0, 400), 4096);
	close(fd);
	fd = open("file", O_RDWR); /* through the page cache: done at once, but not reaped */
	struct iocb last = request(IOCB_CMD_PWRITE, fd, block[2], 4096, 4096, 401), *l[1] = {&last};
	submit(ctx, l, 1, 1);
	return 0;
}
