// SPDX-License-Identifier: Apache-2.0
/* A ring of io_uring by its system calls alone. */
#pragma once
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define OP_FTRUNCATE 55 /* IORING_OP_FTRUNCATE, Linux 6.9 */

/* struct io_uring_cqe without its optional half */
struct completion {
	uint64_t user_data;
	int res;
	unsigned flags;
};

struct ring {
	int fd;
	unsigned flags, entries, queued;
	_Atomic unsigned *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
	unsigned sq_mask, cq_mask, *sq_array;
	struct io_uring_sqe *sqes;
	struct completion *cqes;
};

static inline int ring_open(struct ring *r, unsigned entries, struct io_uring_params *p)
{
	struct io_uring_params none = {0};
	if (!p)
		p = &none;
	memset(r, 0, sizeof(*r));
	r->fd = syscall(SYS_io_uring_setup, entries, p);
	if (r->fd < 0)
		return -errno;
	size_t sq = p->sq_off.array + p->sq_entries * sizeof(unsigned), cq = p->cq_off.cqes + p->cq_entries * sizeof(struct completion);
	char *m = mmap(0, sq > cq ? sq : cq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQ_RING);
	r->sqes = mmap(0, p->sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
	if (m == MAP_FAILED || r->sqes == MAP_FAILED)
		err(1, "map a ring");
	r->sq_head = (void *)(m + p->sq_off.head);
	r->sq_tail = (void *)(m + p->sq_off.tail);
	r->sq_flags = (void *)(m + p->sq_off.flags);
	r->sq_mask = *(unsigned *)(m + p->sq_off.ring_mask);
	r->sq_array = (void *)(m + p->sq_off.array);
	r->cq_head = (void *)(m + p->cq_off.head);
	r->cq_tail = (void *)(m + p->cq_off.tail);
	r->cq_mask = *(unsigned *)(m + p->cq_off.ring_mask);
	r->cqes = (void *)(m + p->cq_off.cqes);
	r->flags = p->flags;
	r->entries = p->sq_entries;
	return 0;
}

/* ring_add returns a cleared entry; it is submitted by ring_submit. */
static inline struct io_uring_sqe *ring_add(struct ring *r, int op, int fd, const void *addr, unsigned len, uint64_t off, uint64_t user_data)
{
	unsigned tail = atomic_load(r->sq_tail) + r->queued;
	while (tail - atomic_load(r->sq_head) >= r->entries)
		; /* SQPOLL */
	struct io_uring_sqe *s = &r->sqes[tail & r->sq_mask];
	memset(s, 0, sizeof(*s));
	s->opcode = op;
	s->fd = fd;
	s->addr = (uintptr_t)addr;
	s->len = len;
	s->off = off;
	s->user_data = user_data;
	r->sq_array[tail & r->sq_mask] = tail & r->sq_mask;
	r->queued++;
	return s;
}

static inline int ring_submit(struct ring *r, unsigned wait)
{
	unsigned n = r->queued;
	atomic_fetch_add(r->sq_tail, n);
	r->queued = 0;
	if (r->flags & IORING_SETUP_SQPOLL) {
		atomic_thread_fence(memory_order_seq_cst);
		if (atomic_load(r->sq_flags) & IORING_SQ_NEED_WAKEUP)
			syscall(SYS_io_uring_enter, r->fd, 0, 0, IORING_ENTER_SQ_WAKEUP, 0, 0);
		return n;
	}
	int got;
	do
		got = syscall(SYS_io_uring_enter, r->fd, n, wait, wait ? IORING_ENTER_GETEVENTS : 0, 0, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/* ring_next waits for a completion. */
static inline struct completion ring_next(struct ring *r)
{
	unsigned head = atomic_load(r->cq_head);
	while (head == atomic_load(r->cq_tail))
		if (!(r->flags & IORING_SETUP_SQPOLL))
			syscall(SYS_io_uring_enter, r->fd, 0, 1, IORING_ENTER_GETEVENTS, 0, 0);
	struct completion c = r->cqes[head & r->cq_mask];
	atomic_store(r->cq_head, head + 1);
	return c;
}

/* ring_do submits what was added, and expects one completion with a result. */
static inline struct completion ring_want(struct ring *r, uint64_t user_data, int res)
{
	if (r->queued && ring_submit(r, 0) < 0)
		err(1, "submit");
	struct completion c = ring_next(r);
	if (c.user_data != user_data || (c.res != res && res != INT32_MIN))
		errx(1, "completion of %llu with %d, want %llu with %d", (unsigned long long)c.user_data, c.res, (unsigned long long)user_data, res);
	return c;
}

static inline long ring_register(struct ring *r, unsigned op, const void *arg, unsigned n)
{
	long got = syscall(SYS_io_uring_register, r->fd, op, arg, n);
	if (got < 0)
		err(1, "io_uring_register %u", op);
	return got;
}
