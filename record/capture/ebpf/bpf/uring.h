// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* io_uring. A request is seen when the kernel has taken it from the submission queue,
 * in the thread that enters or in the ring's own (SQPOLL), and at each completion,
 * before the program can see that: in the thread, in a worker, or in the ring's own.
 * All three have the program's memory and descriptors. */
#pragma once

#include "aio.h"
#include "ends.h"
#include "follow.h"
#include "slots.h"

#define IORING_SETUP_SQPOLL (1u << 1)
#define IORING_SETUP_SQE128 (1u << 10)
#define IORING_SETUP_NO_SQARRAY (1u << 16)
#define PF_IO_WORKER 0x00000010 /* linux/sched.h */
#define PF_USER_WORKER 0x00004000
#define IOSQE_FIXED_FILE 1
#define IOSQE_IO_DRAIN 2
#define IOSQE_BUFFER_SELECT 32
#define IOSQE_CQE_SKIP_SUCCESS 64
#define IORING_CQE_F_MORE 2
#define IORING_FILE_INDEX_ALLOC (~0u)

/* Rings by the kernel's address: who made them, under what number. */
struct uring {
	u32 pid, tid, shard;
	s32 fd;
	u32 silent;  /* has had requests whose success is not told */
	u32 crowded; /* its queue of completions was full: requests are found by shots */
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct uring);
} urings SEC(".maps");

/* Requests that may complete more than once; all but the last completion come
 * without the request. */
struct shot_key {
	u64 ctx, user_data;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct shot_key);
	__type(value, u64);
} shots SEC(".maps");

static __always_inline void delete_uring(struct request *r, struct request_key *k)
{
	if (r->state & REQUEST_NAMED) {
		struct shot_key sk = {r->ctx, word(r, 32, 8)};
		bpf_map_delete_elem(&shots, &sk);
	}
	delete_request(k, r->niov);
}

/* select_buffer finds which provided buffer was taken. */
static __always_inline void select_buffer(struct request *r, struct request_row *row)
{
	u64 addr = 0;

	if (!(row->flags & (ROW_SELECT | ROW_SELECT_MSG)) || !(r->head[1] & IOSQE_BUFFER_SELECT) || r->ret <= 0)
		return;
	if (row->s.caps[0].len == IOT_LEN_MSG) {
		r->state |= REQUEST_NOWHERE;
		return;
	}
	if (r->kreq && row->flags & ROW_SELECT) {
		addr = MEMBER((struct io_rw *)r->kreq, addr);
	} else if (r->kreq) {
		struct io_async_msghdr *m = MEMBER((struct io_kiocb *)r->kreq, async_data);
		if (m && MEMBER(m, msg.msg_iter.iter_type) == bpf_core_enum_value(enum iter_type, ITER_UBUF))
			addr = (u64)MEMBER(m, msg.msg_iter.ubuf); /* not several (IORING_RECVSEND_BUNDLE) */
	}
	r->t.args[1] = addr;
	r->iov[0].base = addr;
	r->iov[0].len = r->ret;
	r->niov = addr ? 1 : 0;
	if (!r->t.args[2])
		r->t.args[2] = r->ret; /* as much as the buffer has room for */
}

/* end_uring writes the call of a completion. (Not static: verified once, not at each
 * call.) */
__noinline int end_uring(struct work *w, struct request_key *key, u64 now, u32 flags)
{
	struct task_struct *t = self();
	struct request *r;
	u32 nr, index;

	if (!w || !key)
		return 0;
	struct request_key *k = own_key(key);
	if (!k)
		return 0;
	r = bpf_map_lookup_elem(&requests, k);
	if (!r)
		return 0;
	nr = r->row;
	struct request_row *row = bpf_map_lookup_elem(&request_table, &nr);
	bool here = (u64)t->mm == r->mm;

	if (!row)
		return 0;
	if (r->kreq) {
		r->kfile = (u64)MEMBER((struct io_kiocb *)r->kreq, file);
		if (!r->kfile && row->fd_arg < IOT_MAX_ARGS) {
			u32 fd = arg_of(&r->t, row->fd_arg);
			if (r->head[1] & IOSQE_FIXED_FILE)
				r->kfile = slot_file(r->ctx, fd);
			else if (here)
				r->kfile = (u64)file_of(fd);
		}
	} else {
		r->kfile = 0;
	}
	select_buffer(r, row);
	begin_end(w, r, row, now, flags);
	if (row->s.flags & SPEC_FD_RESULT && !failed(r->ret) && !(flags & CALL_INTERRUPTED)) {
		index = word(r, 44, 4);
		if (row->flags & ROW_DIRECT && index) {
			index = index == IORING_FILE_INDEX_ALLOC ? r->ret : index - 1;
			u64 f = slot_file(r->ctx, index);
			if (f)
				put_open_file(w, (struct file *)f, index, IOT_RESULT_ARG);
		} else if (here) {
			put_object(w, r->ret, IOT_RESULT_ARG);
		}
	}
	if (row->s.flags & SPEC_INNER && here && !failed(r->ret) && !(flags & CALL_INTERRUPTED))
		put_inner(w, &r->t, &row->s.caps[0], r->ret);
	if (w->nsockets)
		put_ends(w);
	if (row->flags & ROW_SLOTS && r->ret > 0 && here)
		put_slots(w, 0, r->t.args[0], r->t.args[2], r->ret);
	if (row->s.caps[0].len == IOT_LEN_MSG && here && !(r->state & REQUEST_NOWHERE) && !(flags & CALL_INTERRUPTED))
		put_messages(w, &r->t, &row->s.caps[0], r->ret);
	finish_end(w, r, row, k, flags);
	return 0;
}

/* end_silent ends a request of whose success the kernel says nothing. */
static __always_inline int end_silent(struct work *w, struct request_key *k, u64 now)
{
	struct request *r = bpf_map_lookup_elem(&requests, k);
	u32 nr;

	if (!r)
		return 0;
	nr = r->row;
	struct request_row *row = bpf_map_lookup_elem(&request_table, &nr);
	r->kreq = 0;
	r->ret = 0;
	if (r->state & REQUEST_CANCELLED)
		r->ret = -ECANCELED;
	else if (row && row->flags & ROW_FULL)
		r->ret = full_result(w, r, row, k);
	end_uring(w, k, now, r->state & (REQUEST_SILENT | REQUEST_CANCELLED) ? 0 : CALL_INTERRUPTED);
	delete_uring(r, k);
	return 0;
}

/* What is ended of the requests that a search finds. */
struct ending {
	struct work *w;
	struct sweep *s;
	u64 now;
};
static long end_next(u32 i, struct ending *c)
{
	struct sweep *s = c->s;
	u32 at = s->next;

	if (at >= s->n) {
		s->n = s->next = at = 0;
		bpf_for_each_map_elem(&requests, look_at, &s, 0);
		if (!s->n)
			return 1;
	}
	if (at >= MAX_FOUND)
		return 1;
	struct request_key k = s->found[at];
	s->next = at + 1;
	if (k.owner)
		end_aio(c->w, &k, c->now, 0, CALL_INTERRUPTED);
	else
		end_silent(c->w, &k, c->now);
	return 0;
}

/* end_all ends all requests that a search finds. (One loop, not two, for the verifier's sake: each
 * may be a frame.) */
#define MAX_ENDED 65536 /* as many as there can be */
static __always_inline int end_all(struct work *w, struct sweep *s, u64 now)
{
	struct ending c = {.w = w, .s = s, .now = now};

	s->n = s->next = 0;
	each(MAX_ENDED + 1, end_next, &c);
	return 0;
}

/* end_silent_before ends the silent requests that one with IOSQE_IO_DRAIN waited for. */
static __always_inline void end_silent_before(struct work *w, struct request *r, u64 now)
{
	struct request_work *rw = request_work();
	struct uring *ring = bpf_map_lookup_elem(&urings, &r->ctx);
	if (!rw || !ring || !ring->silent)
		return;
	struct sweep *s = &rw->sweep;
	s->what = FIND_SILENT;
	s->owner = 0;
	s->ctx = r->ctx;
	s->before = r->t.enter;
	end_all(w, s, now);
}

/* end_thread ends what a thread leaves behind; control blocks of AIO are the
 * process's. */
__noinline int end_thread(struct work *w, struct task *st, u64 now)
{
	if (!w || !st)
		return 0;
	struct request_work *rw = request_work();

	if (!rw || !(st->flags & TASK_REQUESTS))
		return 0;
	struct sweep *s = &rw->sweep;
	s->what = FIND_THREAD;
	s->owner = 0;
	s->tid = st->tid;
	end_all(w, s, now);
	return 0;
}

/* end_process ends the process's requests of AIO: all, or those of a context. */
__noinline int end_process(struct work *w, u64 ctx, u64 now)
{
	if (!w)
		return 0;
	struct request_work *rw = request_work();
	u32 pid = own_id() >> 32;

	if (!rw || !bpf_map_lookup_elem(&aio_users, &pid))
		return 0;
	if (!ctx)
		bpf_map_delete_elem(&aio_users, &pid);
	struct sweep *s = &rw->sweep;
	s->what = ctx ? FIND_QUEUE : FIND_THREAD;
	s->owner = pid;
	s->ctx = ctx;
	s->tid = 0;
	end_all(w, s, now);
	return 0;
}

/* request_calls does what the calls about requests add to them. */
static __always_inline int request_calls(struct work *w, struct task *st, struct spec *s, u64 now, s64 ret)
{
	if (s->flags & SPEC_AIO_SUBMIT)
		aio_leave(w, st, ret);
	else
		aio_reap(w, st, now, ret);
	return 0;
}

/* submit_uring takes a request whose submission queue entry should be at sqe. */
static __always_inline int submit_uring(u64 kreq, u64 ctx, u64 sqe, u32 opcode, u64 user_data, bool refused)
{
	struct task_struct *t = bpf_get_current_task_btf();
	bool helper = t->flags & (PF_IO_WORKER | PF_USER_WORKER);
	struct uring *ring = bpf_map_lookup_elem(&urings, &ctx);
	struct task *st = helper && ring ? 0 : followed(helper ? t->group_leader : t);
	struct request_key k = {kreq, 0};
	struct request_work *rw = request_work();
	u64 now;
	u32 nr;

	if (released() || !rw || (!st && (!ring || ring->pid != tgid_of(t))))
		return 0;
	struct work *w = begin(&now);
	if (!w)
		return 0;
	if (bpf_map_lookup_elem(&requests, &k)) /* the kernel uses its memory again */
		end_silent(w, &k, now);
	struct request *r = &rw->r;
	__builtin_memset(r, 0, sizeof(*r));
	if (bpf_probe_read_kernel(r->head, HEAD_BYTES, (void *)sqe) ||
	    (!refused && (r->head[0] != (u8)opcode || word(r, 32, 8) != user_data))) {
		__builtin_memset(r->head, 0, HEAD_BYTES); /* it is another's */
		r->head[0] = opcode;
		*(u64 *)(r->head + 32) = user_data;
	}
	r->ctx = ctx;
	r->kreq = kreq;
	r->mm = (u64)t->mm;
	r->t.enter = now;
	r->t.nr = r->head[0];
	r->t.offered = ~0ull;
	if (st) {
		r->pid = tgid_of(t);
		r->t.tid = st->tid ? st->tid : helper ? tgid_of(t) : tid_of(t);
		r->t.shard = st->shard;
		r->t.cpu = helper ? 0 : t->se.sum_exec_runtime;
		st->flags |= TASK_REQUESTS;
		r->queue = ring ? (s64)ring->fd : (s64)-1;
	} else {
		r->pid = ring->pid;
		r->t.tid = ring->tid;
		r->t.shard = ring->shard;
		r->queue = (s64)ring->fd;
	}
	nr = r->head[0] + 1;
	struct request_row *row = bpf_map_lookup_elem(&request_table, &nr);
	if (nr >= URING_ROWS || !row || !row->s.op) {
		nr = 0;
		row = bpf_map_lookup_elem(&request_table, &nr);
	}
	if (!row)
		goto out;
	r->row = nr;
	set_args(r, row);
	if (r->head[1] & IOSQE_IO_DRAIN)
		r->state |= REQUEST_DRAIN;
	if (r->head[1] & IOSQE_CQE_SKIP_SUCCESS) {
		r->state |= REQUEST_SILENT;
		if (ring)
			ring->silent = 1;
		if (row->fd_arg < IOT_MAX_ARGS) {
			s32 fd = arg_of(&r->t, row->fd_arg);
			struct file *f = r->head[1] & IOSQE_FIXED_FILE ? (struct file *)slot_file(ctx, fd) : file_of(fd);
			note_file(w, r, f, fd, row->fd_arg);
		}
	}
	if (row->flags & ROW_SHOTS || (ring && ring->crowded)) {
		struct shot_key sk = {ctx, word(r, 32, 8)};
		r->state |= REQUEST_NAMED;
		bpf_map_update_elem(&shots, &sk, &kreq, BPF_ANY);
	}
	begin_request(w, r, row, &k);
out:
	end();
	return 0;
}

/* uring_created notes whose a new ring is. */
static __always_inline int uring_created(int fd, void *ring)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *st = followed(t);
	u64 key = (u64)ring;

	if (!st || fd < 0)
		return 0;
	struct uring u = {tgid_of(t), st->tid, st->shard, fd, 0, 0};
	bpf_map_update_elem(&urings, &key, &u, BPF_ANY);
	return 0;
}

/* uring_submitted: the kernel has taken a request from the submission queue. */
static __always_inline int uring_submitted(struct io_kiocb *req)
{
	struct io_ring_ctx *ring = req->ctx;
	u32 mask = ring->sq_entries - 1, head = (ring->cached_sq_head - 1) & mask;
	u64 sqe;

	/* The entry that the kernel has just taken (io_get_sqe). */
	if (!(ring->flags & IORING_SETUP_NO_SQARRAY) &&
	    bpf_probe_read_kernel(&head, sizeof(head), (void *)(word_at(&ring->sq_array) + 4ull * head)))
		return 0;
	head &= mask;
	sqe = word_at(&ring->sq_sqes) + ((u64)head * HEAD_BYTES << (ring->flags & IORING_SETUP_SQE128 ? 1 : 0));
	return submit_uring((u64)req, (u64)ring, sqe, req->opcode, req->cqe.user_data, false);
}

/* A request that the kernel refused at once: on_uring_submit is not called. */
static __always_inline int uring_refused(const struct io_uring_sqe *sqe, struct io_kiocb *req)
{
	return submit_uring((u64)req, (u64)req->ctx, (u64)sqe, req->opcode, req->cqe.user_data, true);
}

/* The kernel puts a request behind another one of a chain. */
static __always_inline int uring_linked(struct io_kiocb *req, struct io_kiocb *prev)
{
	struct request_key k = {(u64)req, 0}, pk = {(u64)prev, 0};
	struct request *r = bpf_map_lookup_elem(&requests, &k), *p = bpf_map_lookup_elem(&requests, &pk);

	if (r && p && p->state & REQUEST_SILENT)
		r->prev = (u64)prev;
	return 0;
}

/* A chain is broken before a request of it, which may not be told either. */
static __always_inline int uring_link_failed(struct io_kiocb *link)
{
	struct request_key k = {(u64)link, 0};
	struct request *r = bpf_map_lookup_elem(&requests, &k);

	if (r)
		r->state |= REQUEST_CANCELLED;
	return 0;
}

/* end_before ends the earliest but one of the requests that came before in a chain. (What it has to
 * know is in the work spaces, for the stack's sake.) */
static long end_before(u32 i, struct request_work **p_rw)
{
	struct request_work *rw = *p_rw;
	struct work *w = this_work();

	if (!w)
		return 1;
	struct request *r = bpf_map_lookup_elem(&requests, &rw->last);
	struct request_key first = {r ? r->prev : 0, 0}, before;
	struct request *p = first.id ? bpf_map_lookup_elem(&requests, &first) : 0;

	if (!p)
		return 1;
	before.id = p->prev;
	before.owner = 0;
	bool more = before.id && bpf_map_lookup_elem(&requests, &before);
	if (more)
		first = before;
	end_silent(w, &first, rw->now);
	return more ? 0 : 1;
}

static __always_inline int complete_uring(struct request_key *k, s32 res, u32 cqe_flags)
{
	struct request *r = bpf_map_lookup_elem(&requests, k);
	struct request_work *rw = request_work();
	u64 now;
	u32 nr;

	if (!r || !rw || released())
		return 0;
	struct work *w = begin(&now);
	if (!w)
		return 0;
	/* A chain of silent requests ended in its order. */
	rw->last = *k;
	rw->now = now;
	each(64, end_before, &rw);
	r = bpf_map_lookup_elem(&requests, k);
	if (!r)
		goto out;
	if (r->state & REQUEST_DRAIN)
		end_silent_before(w, r, now);
	r->ret = res;
	r->extra = cqe_flags;
	end_uring(w, k, now, 0);
	nr = r->row;
	struct request_row *row = bpf_map_lookup_elem(&request_table, &nr);
	if (cqe_flags & IORING_CQE_F_MORE && row && !(row->flags & ROW_ZC))
		r->t.enter = now + 1; /* of the next */
	else
		delete_uring(r, k);
out:
	end();
	return 0;
}

const volatile bool tells_cqe = false; /* the tracepoint has the completion, not its words */

/* uring_completed: a completion is about to be shown to the program; req is 0 if more of
 * the same request will come. */
static __always_inline int uring_completed(u64 ring, u64 req, u64 user_data, s32 res, u32 cqe_flags)
{
	struct request_key k = {req, 0};

	if (!req) {
		struct shot_key sk = {ring, user_data};
		u64 *id = bpf_map_lookup_elem(&shots, &sk);
		if (!id)
			return 0;
		k.id = *id;
	}
	return complete_uring(&k, res, cqe_flags);
}

/* has_result looks into the kernel's request. */
static __noinline bool has_result(u64 kreq, u64 user_data, s32 res)
{
	struct io_kiocb *req = (struct io_kiocb *)kreq;
	return MEMBER(req, cqe.user_data) == user_data && MEMBER(req, cqe.res) == res;
}

/* A completion that finds no room in the queue is kept by the kernel. Only what it
 * says tells which request it is of. */
static __always_inline int uring_overflowed(void *queue, u64 user_data, s32 res, u32 cqe_flags)
{
	struct shot_key sk = {(u64)queue, user_data};
	u64 *id = bpf_map_lookup_elem(&shots, &sk);
	struct uring *ring = bpf_map_lookup_elem(&urings, &sk.ctx);
	struct request_work *rw = request_work();
	u32 i;

	if (!rw || !ring)
		return 0;
	struct request_key *k = &rw->last; /* not on the stack */
	ring->crowded = 1;
	if (id && (cqe_flags & IORING_CQE_F_MORE || has_result(*id, user_data, res))) {
		k->id = *id;
		k->owner = 0;
		goto found;
	}
	struct sweep *s = &rw->sweep;
	s->what = FIND_DATA;
	s->ctx = sk.ctx;
	s->user_data = user_data;
	s->owner = s->n = 0;
	bpf_for_each_map_elem(&requests, look_at, &s, 0);
	if (!s->n)
		return 0;
	*k = s->found[0];
	repeat(i, s->n, MAX_FOUND) {
		if (i >= MAX_FOUND)
			break;
		if (has_result(s->found[i].id, user_data, res)) {
			*k = s->found[i];
			break;
		}
	}
found:
	return complete_uring(k, res, cqe_flags);
}
