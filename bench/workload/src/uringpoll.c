// SPDX-License-Identifier: Apache-2.0
/* uringpoll sees completions in the queue alone, without a call, and uses its one buffer again at once:
 * also that of a chain that reads and writes what was read. It enters what is no ring, and ends while a thread waits
 * for a request. */
#include "ring.h"
#include <pthread.h>

#define SIZE 4096
#define TIMES 200

static struct ring r;
static char buf[SIZE];

static int next(void)
{
	unsigned head = atomic_load(r.cq_head);
	while (atomic_load(r.cq_tail) == head)
		;
	int res = r.cqes[head & r.cq_mask].res;
	atomic_store(r.cq_head, head + 1);
	return res;
}

static void done(int n, char used)
{
	for (; n > 0; n--) {
		int res = next();
		if (res != SIZE)
			errx(1, "a request = %d, want %d", res, SIZE);
	}
	memset(buf, used, SIZE);
}

static void *waits(void *pipe)
{
	static struct ring own;
	static char b[8];
	if (ring_open(&own, 4, 0))
		return 0;
	ring_add(&own, IORING_OP_READ, *(int *)pipe, b, sizeof(b), 0, 9);
	ring_submit(&own, 1);
	return 0;
}

int main(void)
{
	pthread_t thread;
	int ends[2];
	int error = ring_open(&r, 16, 0), data = open("data", O_RDWR | O_CREAT | O_TRUNC, 0644),
	    copy = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (error || data < 0 || copy < 0)
		errx(1, "a ring: %s, or files", strerror(-error));
	for (int i = 0; i < TIMES; i++) {
		memset(buf, 'a' + i % 26, SIZE);
		ring_add(&r, IORING_OP_WRITE, data, buf, SIZE, SIZE * i, 1);
		ring_submit(&r, 0);
		done(1, 'z');
	}
	struct iovec parts[] = {{buf, SIZE / 4}, {buf + SIZE / 4, SIZE - SIZE / 4}};
	for (int i = 0; i < TIMES; i++) {
		memset(buf, 'a' + i % 26, SIZE);
		ring_add(&r, IORING_OP_WRITEV, data, parts, 2, SIZE * i, 5);
		ring_submit(&r, 0);
		done(1, 'z');
	}
	for (int i = 0; i < TIMES; i++) {
		ring_add(&r, IORING_OP_READ, data, buf, SIZE, SIZE * i, 2)->flags = IOSQE_ASYNC;
		ring_submit(&r, 0);
		if (next() != SIZE || buf[0] != 'a' + i % 26)
			errx(1, "read %d: %c", i, buf[0]);
		done(0, '#');
	}
	for (int i = 0; i < TIMES; i++) {
		ring_add(&r, IORING_OP_READ, data, buf, SIZE, SIZE * i, 3)->flags = IOSQE_IO_LINK;
		ring_add(&r, IORING_OP_WRITE, copy, buf, SIZE, SIZE * i, 4);
		ring_submit(&r, 0);
		done(2, '!');
	}
	syscall(SYS_io_uring_enter, data, 1, 0, 0, 0, 0);
	syscall(SYS_io_uring_enter, 77, 1, 0, 0, 0, 0);
	if (pipe(ends) || pthread_create(&thread, 0, waits, ends))
		err(1, "a thread");
	usleep(50000);
	exit(0);
}
