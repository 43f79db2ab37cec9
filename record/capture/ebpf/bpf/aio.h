// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Linux AIO. Control blocks are read when io_submit is called, since another thread
 * may be told of the completion before it returns; completions are what io_getevents
 * gives. A program that takes completions from the mapped ring itself is not seen to
 * do so: its requests end when their block is used again, or the context or the
 * process ends, with the result that still stands in the ring. */
#pragma once

#include "request.h"

#define MAX_AIO 65536 /* requests of one call that are looked at */

/* Processes that have submitted any. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u32);
} aio_users SEC(".maps");

/* struct aio_ring (fs/aio.c), which an AIO context points to; nr events follow. */
struct aio_ring {
	u32 id, nr, head, tail, magic, compat, incompat, header_length;
};
struct aio_event {
	u64 data, obj;
	s64 res, res2;
};
#define AIO_RING_MAGIC 0xa10a10a1
#define MAX_LOOK 4096

/* ring_tail returns where the next completion of a context goes. */
static __always_inline u32 ring_tail(u64 ctx)
{
	struct aio_ring ring;
	if (bpf_probe_read_user(&ring, sizeof(ring), (void *)ctx) || ring.magic != AIO_RING_MAGIC)
		return 0;
	return ring.tail;
}

struct finding {
	struct request *r;
	u64 id;
	u32 tail, nr, found, zero;
};
static long look_back(u32 i, struct finding *c)
{
	struct request *r = c->r;
	struct aio_event ev;
	u32 at = c->tail - 1 - i;

	if (c->tail < 1 + i)
		at += c->nr;
	if (bpf_probe_read_user(&ev, sizeof(ev), (void *)(r->ctx + sizeof(struct aio_ring) + (u64)at * sizeof(ev))))
		return 1;
	if (ev.obj != c->id)
		return 0;
	r->ret = ev.res;
	c->found = 1;
	return 1;
}

/* find_result looks for a completion that came after the request. */
static __noinline int find_result(struct request *r, u64 id)
{
	struct aio_ring ring;
	u32 n;

	if (bpf_probe_read_user(&ring, sizeof(ring), (void *)r->ctx) || ring.magic != AIO_RING_MAGIC || !ring.nr)
		return 0;
	n = ring.tail - (u32)r->prev;
	if (ring.tail < (u32)r->prev)
		n += ring.nr;
	struct finding c = {.r = r, .id = id, .tail = ring.tail, .nr = ring.nr};
	each(n < MAX_LOOK ? n : MAX_LOOK, look_back, &c);
	return c.found;
}

/* end_aio writes the call of a completion, which if it was not seen is looked for. */
__noinline int end_aio(struct work *w, struct request_key *key, u64 now, s64 res, u32 flags)
{
	struct request *r;
	u32 nr;

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
	r->ret = res;
	if (flags & CALL_INTERRUPTED && find_result(r, k->id))
		flags = 0;
	/* The number may stand for another file by now. */
	if (r->kfile && r->kfile != (u64)file_of(r->file.fd))
		r->kfile = 0;
	if (row) {
		begin_end(w, r, row, now, flags);
		finish_end(w, r, row, k, flags);
	}
	delete_request(k, r->niov);
	return 0;
}

/* submit_aio takes the control block at addr. */
__noinline int submit_aio(struct work *w, struct task *st, u64 addr, u64 enter)
{
	if (!w || !st)
		return 0;
	struct task_struct *t = bpf_get_current_task_btf();
	struct request_key k = {addr, tgid_of(t)};
	struct request_work *rw = request_work();
	u32 nr;

	if (!rw)
		return 0;
	struct request *r = &rw->r;
	__builtin_memset(r, 0, sizeof(*r));
	if (bpf_probe_read_user(r->head, HEAD_BYTES, (void *)addr))
		return -1;
	if (bpf_map_lookup_elem(&requests, &k))
		end_aio(w, &k, enter, 0, CALL_INTERRUPTED);
	nr = word(r, 16, 2);
	r->t.nr = nr;
	nr = URING_ROWS + 1 + (nr < REQUEST_ROWS ? nr : REQUEST_ROWS);
	struct request_row *row = bpf_map_lookup_elem(&request_table, &nr);
	if (!row || !row->s.op) {
		nr = URING_ROWS;
		row = bpf_map_lookup_elem(&request_table, &nr);
	}
	if (!row)
		return 0;
	r->row = nr;
	r->pid = tgid_of(t);
	r->mm = (u64)t->mm;
	r->t.tid = st->tid;
	r->t.shard = st->shard;
	r->t.cpu = st->cpu;
	r->t.enter = enter;
	r->queue = r->ctx = st->args[0];
	r->extra = addr;
	r->prev = ring_tail(r->ctx);
	set_args(r, row);
	if (row->fd_arg < IOT_MAX_ARGS) {
		s32 fd = arg_of(&r->t, row->fd_arg);
		struct file *f = file_of(fd);
		r->kfile = (u64)f;
		note_file(w, r, f, fd, row->fd_arg);
	}
	begin_request(w, r, row, &k);
	return 0;
}

/* submit_next and leave_next are for each control block that io_submit was given. */
static long submit_next(u32 i, struct work **w)
{
	struct task *st = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	u64 addr;

	if (!st)
		return 1;
	if (!bpf_probe_read_user(&addr, sizeof(addr), (void *)(st->args[2] + 8ull * i)) &&
	    !submit_aio(*w, st, addr, st->enter + 1 + i))
		return 0;
	st->flags |= TASK_AIO_LATE; /* again when the kernel has touched it */
	return 1;
}

/* aio_enter is the entry of io_submit(ctx, nr, iocbpp). Requests begin a nanosecond
 * apart, which tells them apart. */
static __always_inline int aio_enter(struct work *w, struct task *st)
{
	u32 n = st->args[1] < MAX_AIO ? st->args[1] : MAX_AIO;

	u32 pid = own_id() >> 32;
	if (!bpf_map_lookup_elem(&aio_users, &pid))
		bpf_map_update_elem(&aio_users, &pid, &pid, BPF_ANY);
	st->flags &= ~TASK_AIO_LATE;
	each(n, submit_next, &w);
	return 0;
}

static long leave_next(u32 i, struct work **p)
{
	struct task *st = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	struct request_key k = {0, (u32)(own_id() >> 32)};
	struct work *w = *p;

	if (!st || bpf_probe_read_user(&k.id, sizeof(k.id), (void *)(st->args[2] + 8ull * i)))
		return 1;
	struct request *r = bpf_map_lookup_elem(&requests, &k);
	bool mine = r && r->t.enter == st->enter + 1 + i;
	if (i < w->taken) {
		if (st->flags & TASK_AIO_LATE && !mine)
			submit_aio(w, st, k.id, st->enter + 1 + i);
	} else if (mine) {
		delete_request(&k, r->niov);
	}
	return 0;
}

/* aio_leave is the end of io_submit: what it did not take, and what could not be read
 * before. */
static __always_inline int aio_leave(struct work *w, struct task *st, s64 ret)
{
	u32 n = st->args[1] < MAX_AIO ? st->args[1] : MAX_AIO;

	w->taken = failed(ret) ? 0 : ret;
	if (!(st->flags & TASK_AIO_LATE) && w->taken >= n)
		return 0;
	each(n, leave_next, &w);
	return 0;
}

/* What the end of io_getevents goes through. */
struct reaping {
	struct work *w;
	struct task *st;
	u64 now;
};
static long reap_next(u32 i, struct reaping *c)
{
	struct task *st = c->st;
	struct aio_event ev;

	if (bpf_probe_read_user(&ev, sizeof(ev), (void *)(st->args[3] + 32ull * i)))
		return 1;
	struct request_key k = {ev.obj, (u32)(own_id() >> 32)};
	end_aio(c->w, &k, c->now, ev.res, 0);
	return 0;
}

/* aio_reap is the end of io_getevents(ctx, min_nr, nr, events, timeout). */
__noinline int aio_reap(struct work *w, struct task *st, u64 now, s64 ret)
{
	struct reaping c = {.w = w, .st = st, .now = now};

	if (!w || !st || failed(ret) || ret <= 0)
		return 0;
	each(ret < MAX_AIO ? ret : MAX_AIO, reap_next, &c);
	return 0;
}
