// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests: what a program asks for in a structure of 64 bytes rather than by a
 * system call, and whose completion comes later, perhaps elsewhere. Between the two
 * a request is in the map "requests". It becomes one call in the stream, from its
 * submission to its completion, of the thread that submitted it.
 *
 * What the kernel has done with when it has taken the request (names, structures) is
 * read then, into a RecEnter. Content stays where it is until the program is told of
 * the completion, and is read just before that. */
#pragma once

#include "argv.h"
#include "emit.h"
#include "memory.h"

#define SMALL_IOVECS 4
#define HEAD_BYTES 64
#define MAX_BLOCK 65536 /* XATTR_SIZE_MAX */
#define MAX_FOUND 64
#define ECANCELED 125
#define SPLICE_F_FD_IN_FIXED (1u << 31)

struct request_key {
	u64 id;    /* address of the kernel's request, or of the program's iocb */
	u64 owner; /* 0, or the process that the iocb is of */
};
enum {
	REQUEST_SILENT = 1,    /* success is not told */
	REQUEST_CANCELLED = 2, /* and this has none */
	REQUEST_DRAIN = 4,     /* begins when all before it have ended */
	REQUEST_NAMED = 8,     /* is in shots */
	REQUEST_NOWHERE = 16,  /* where its content is is not known */
};
struct request {
	struct task t; /* that of the record: times, arguments, thread */
	u64 mm;        /* address space of its memory */
	u64 ctx;       /* its queue, in the kernel */
	u64 prev;      /* io_uring: id of a silent request that has to end before this begins; AIO: the ring's tail before it */
	u64 kreq;      /* the kernel's request, 0 if it may be gone */
	u64 kfile;     /* its open file, likewise */
	s64 ret;
	u32 pid, row, state, niov;
	struct iovec iov[SMALL_IOVECS];
	struct object file; /* as it was at the submission; mode 0 if not looked at */
	u8 head[HEAD_BYTES];
	u64 queue, extra; /* stand behind the head in the record: the queue as the program names it, a word of the completion */
};
_Static_assert(sizeof(struct request) % 8 == 0, "request");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct request_key);
	__type(value, struct request);
} requests SEC(".maps");

/* Vectors of requests that have more than a few elements. */
struct vector {
	struct iovec iov[MAX_IOVECS];
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct request_key);
	__type(value, struct vector);
} vectors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REQUEST_ROWS);
	__type(key, u32);
	__type(value, struct request_row);
} request_table SEC(".maps");

/* What a hook composes a request in, and what it searches for. */
struct sweep {
	u64 owner;          /* as in the keys */
	u64 ctx, user_data; /* FIND_DATA: by its queue and the program's word */
	u64 before;         /* FIND_SILENT: of a queue, submitted before */
	u32 tid;            /* FIND_THREAD: of a thread; 0: all */
	u32 what, n, next;
	struct request_key found[MAX_FOUND];
};
enum { FIND_THREAD, FIND_QUEUE, FIND_SILENT, FIND_DATA };
struct request_work {
	struct request r;
	struct sweep sweep;
	struct request_key last; /* of a chain of requests */
	u64 now;
	struct request_key key; /* kernels before 6.4 take no argument of a function for a key, but this */
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct request_work);
} request_works SEC(".maps");

static __always_inline struct request_work *request_work(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&request_works, &zero);
}

/* own_key returns a copy of a key that maps can be asked with. */
static __always_inline struct request_key *own_key(struct request_key *k)
{
	struct request_work *rw = request_work();

	if (!rw)
		return 0;
	rw->key = *k;
	return &rw->key;
}

/* word reads the head; the last words are followed by others. */
static __always_inline u64 word(struct request *r, u8 off, u8 size)
{
	u64 v = *(u64 *)(r->head + (off & (HEAD_BYTES - 1)));
	return size == 8 ? v : size == 4 ? (u32)v : size == 2 ? (u16)v : 0;
}

static __always_inline void set_args(struct request *r, struct request_row *row)
{
	u32 i;

	for (i = 0; i < IOT_MAX_ARGS; i++) {
		struct field *f = &row->fields[i];
		u64 v = word(r, f->off, f->size);
		if (!v && f->alt_size)
			v = word(r, f->alt, f->alt_size);
		else if (f->sign)
			v = (s64)(s32)v;
		r->t.args[i] = v;
	}
}

/* put_block appends up to MAX_BLOCK bytes. */
static __noinline int put_block(struct work *w, u64 addr, u8 arg, u64 n)
{
	u64 off = w->len, last;
	if (off > COMPOSE_MAX || n > MAX_BLOCK)
		return 0;
	off += sizeof(struct piece);
	last = (off + n) & ~7ull;
	if (last <= BUF_BYTES - 8)
		*(u64 *)(w->buf + last) = 0;
	if (bpf_probe_read_user(w->buf + off, n, (void *)addr))
		return 0;
	put_piece(w, arg, 0, n, 0);
	w->len += pad8(n);
	return 1;
}

/* take_vector keeps an iovec array, which the program may use again at once. */
static __always_inline void take_vector(struct work *w, struct request *r, struct request_key *k, u64 addr, u64 count)
{
	r->niov = 0;
	if (!addr || !count || count > MAX_IOVECS)
		return;
	if (bpf_probe_read_user(w->iov, bounded(count * IOVEC_BYTES), (void *)addr))
		return;
	bpf_probe_read_kernel(r->iov, sizeof(r->iov), w->iov);
	if (count > SMALL_IOVECS) {
		struct work *own = this_work(); /* which kernels before 6.4 take for a value, unlike an argument */
		if (!own || bpf_map_update_elem(&vectors, k, own->iov, BPF_ANY))
			return;
	}
	r->niov = count;
}

/* take_entry writes the RecEnter of what is read at submission, if there is any. */
static __noinline int take_entry(struct work *w, struct request *r, struct request_row *row)
{
	struct spec *s = &row->s;
	u64 n;
	u32 i;

	start_entry(w, &r->t);
	((struct rec_data *)w->buf)->p.op = s->op;
	for (i = 0; i < IOT_MAX_CAPS; i++) {
		if (i >= s->ncaps)
			break;
		struct cap *c = &s->caps[i];
		u64 addr = arg_of(&r->t, c->arg);
		if (c->when != IOT_AT_ENTRY || !addr)
			continue;
		n = c->bytes;
		if (c->len == IOT_LEN_ARG)
			n += arg_of(&r->t, c->len_arg);
		if (c->len == IOT_LEN_NUL ? put_string(w, addr, c->arg) : n && put_block(w, addr, c->arg, n))
			continue;
		if (n || c->len == IOT_LEN_NUL)
			put_piece(w, c->arg, PIECE_MISSING, c->len == IOT_LEN_NUL ? 0 : n, 0);
	}
	if (w->npieces)
		end_entry(w, &r->t);
	return 0;
}

/* note_file keeps what the open file of the request is now. */
static __always_inline void note_file(struct work *w, struct request *r, struct file *f, s32 fd, u8 arg)
{
	if (!f)
		return;
	w->len = 0;
	if (put_open_file(w, f, fd, arg))
		bpf_probe_read_kernel(&r->file, sizeof(r->file), w->buf);
}

/* begin_request puts a submitted request into the map. The caller has filled in all
 * that does not come from the row. */
static __noinline int begin_request(struct work *w, struct request *r, struct request_row *row, struct request_key *k)
{
	struct spec *s = &row->s;
	u32 i;

	for (i = 0; i < IOT_MAX_CAPS; i++) {
		if (i >= s->ncaps)
			break;
		struct cap *c = &s->caps[i];
		if (c->kind == IOT_KIND_VEC)
			take_vector(w, r, k, arg_of(&r->t, c->arg), arg_of(&r->t, c->len_arg));
	}
	if (s->flags & SPEC_ENTRY)
		take_entry(w, r, row);
	if (bpf_map_update_elem(&requests, k, r, BPF_ANY)) {
		__sync_fetch_and_add(&shared.requests, 1);
		bpf_map_delete_elem(&vectors, k);
	}
	return 0;
}

static __always_inline void delete_request(struct request_key *k, u32 niov)
{
	if (niov > SMALL_IOVECS)
		bpf_map_delete_elem(&vectors, k);
	bpf_map_delete_elem(&requests, k);
}

static __always_inline void put_head(struct work *w, struct request *r)
{
	u64 off = w->len;
	if (off > COMPOSE_MAX)
		return;
	put_piece(w, IOT_REQUEST_ARG, 0, HEAD_BYTES + 16, 0);
	bpf_probe_read_kernel(w->buf + off + sizeof(struct piece), HEAD_BYTES + 16, r->head);
	w->len += HEAD_BYTES + 16;
}

/* put_vectored plans the content of a vector that was kept. */
static __noinline int put_vectored(struct work *w, struct request *r, struct request_key *key, struct cap *c, s64 ret)
{
	struct request_key *k = own_key(key);
	u32 n = r->niov;

	if (!k)
		return 0;

	if (n > SMALL_IOVECS) {
		struct vector *v = bpf_map_lookup_elem(&vectors, k);
		if (!v)
			n = 0;
		else
			bpf_probe_read_kernel(w->iov, sizeof(w->iov), v);
	} else {
		bpf_probe_read_kernel(w->iov, sizeof(r->iov), r->iov);
	}
	if (!n) {
		put_piece(w, c->arg, PIECE_SHAPE | PIECE_MISSING, 0, 0);
		if (ret > 0)
			put_piece(w, c->arg, PIECE_MISSING, ret, 0);
		return 0;
	}
	w->want = 0;
	each(n, add_length, &w);
	if (ret > 0 && (u64)ret > w->want)
		ret = w->want;
	w->kept = true;
	plan_vector(w, c, arg_of(&r->t, c->arg), n, ret);
	return 0;
}

/* full_result is what a request moves if nothing cuts it short. */
static __noinline s64 full_result(struct work *w, struct request *r, struct request_row *row, struct request_key *k)
{
	struct spec *s = &row->s;
	u32 i;

	for (i = 0; i < IOT_MAX_CAPS; i++) {
		if (i >= s->ncaps)
			break;
		struct cap *c = &s->caps[i];
		if (c->kind == IOT_KIND_BUF)
			return arg_of(&r->t, c->len_arg) & 0x7fffffff;
		if (c->kind != IOT_KIND_VEC)
			continue;
		w->want = 0;
		struct vector *v = r->niov > SMALL_IOVECS ? bpf_map_lookup_elem(&vectors, k) : 0;
		if (v)
			bpf_probe_read_kernel(w->iov, sizeof(w->iov), v);
		else
			bpf_probe_read_kernel(w->iov, sizeof(r->iov), r->iov);
		each(v || r->niov <= SMALL_IOVECS ? r->niov : SMALL_IOVECS, add_length, &w);
		return w->want & 0x7fffffff;
	}
	return 0;
}

#define INTERRUPTED_LEN 0x7ffff000 /* MAX_RW_COUNT: the buffer's own length bounds it */

/* put_result composes or plans what the kernel wrote to an argument other than the
 * content: the simpler of the operation table's rules. */
static __always_inline void put_result(struct work *w, struct request *r, struct cap *c, s64 ret)
{
	u64 addr = arg_of(&r->t, c->arg), v = arg_of(&r->t, c->len_arg), n = 0;
	u32 len = 0;

	if (!addr || failed(ret))
		return;
	switch (c->len) {
	case IOT_LEN_CONST:
		n = c->bytes;
		break;
	case IOT_LEN_ARG:
		n = v + c->bytes;
		break;
	case IOT_LEN_POSITIVE:
		n = ret > 0 ? c->bytes : 0;
		break;
	case IOT_LEN_PTR:
		if (v)
			bpf_probe_read_user(&len, 4, (void *)v);
		n = len < c->bytes ? len : c->bytes;
		break;
	}
	put_bytes(w, c->arg, addr, n, ret);
}

/* put_memory composes the memory of one argument of a request that has ended. (Not
 * static: verified once, not for each argument.) */
__noinline int put_memory(struct work *w, struct request *r, struct request_key *k, struct cap *c, u32 flags)
{
	struct task_struct *t = self();

	if (!w || !r || !k || !c || c->when == IOT_AT_ENTRY)
		return 0;
	u64 addr = arg_of(&r->t, c->arg), n;
	bool content = c->kind == IOT_KIND_BUF || c->kind == IOT_KIND_VEC, msg = c->len == IOT_LEN_MSG;
	bool here = (u64)t->mm == r->mm;
	s64 ret = r->ret;

	if (flags & CALL_INTERRUPTED) { /* what it was to write is known */
		if (!content || c->dir != IOT_DIR_IN || !here || !addr)
			return 0;
		ret = INTERRUPTED_LEN;
	} else if ((content || msg) && ret > 0 && !failed(ret) && (!here || !addr || r->state & REQUEST_NOWHERE)) {
		put_piece(w, msg ? c->arg | IOT_PART_DATA : c->arg, PIECE_MISSING, ret, 0);
		return 0;
	}
	if (!here)
		return 0;
	if (c->kind == IOT_KIND_VEC)
		return put_vectored(w, r, k, c, ret);
	if (c->kind != IOT_KIND_BUF || c->len != IOT_LEN_RET) {
		if (!msg)
			put_result(w, r, c, ret);
		return 0;
	}
	n = failed(ret) ? 0 : ret;
	if (c->len_arg != IOT_NO_ARG && n > arg_of(&r->t, c->len_arg))
		n = arg_of(&r->t, c->len_arg);
	if (n && addr)
		plan_content(w, c, c->arg, 0, PART_BYTES, addr, n, 0);
	return 0;
}

/* put_own_file appends the request's open file: as it is now if that is known, else
 * as it was. */
static __always_inline void put_own_file(struct work *w, struct request *r, u8 arg)
{
	u64 off = w->len;

	if (r->kfile) {
		put_open_file(w, (struct file *)r->kfile, arg_of(&r->t, arg), arg);
	} else if (r->file.mode && off <= COMPOSE_MAX) {
		bpf_probe_read_kernel(w->buf + off, sizeof(r->file), &r->file);
		w->len += sizeof(r->file);
		w->nobjects++;
	}
}

/* slot_file returns what a slot of a ring's table of files holds: a node that points to the
 * file or, before Linux 6.13, the file. */
static __noinline u64 slot_file(u64 ring, u32 slot)
{
	u64 of_slot;

	if (bpf_core_field_exists(struct io_file_table, data)) {
		struct io_ring_ctx *ctx = (struct io_ring_ctx *)ring;
		of_slot = slot < MEMBER(ctx, file_table.data.nr) ? (u64)pointer_at(MEMBER(ctx, file_table.data.nodes) + slot) : 0;
		if (of_slot)
			of_slot += bpf_core_field_offset(struct io_rsrc_node, file_ptr);
	} else {
		struct io_ring_ctx___slots *ctx = (struct io_ring_ctx___slots *)ring;
		of_slot = slot < MEMBER(ctx, nr_user_files) ? (u64)MEMBER(ctx, file_table.files) : 0;
		if (of_slot)
			of_slot += slot * bpf_core_type_size(struct io_fixed_file);
	}
	return of_slot ? word_at((void *)of_slot) & ~7ull : 0;
}

/* press holds a thread whose requests are done by others, if its ring is half full. In a
 * call it will be held at the end of that, and one that could only be stopped by a
 * SIGSTOP is left alone: it might not be seen to be listed. */
static __noinline int press(struct work *w, u32 tid)
{
	if (!signals_tasks || w->avail <= ring_bytes / 2)
		return 0;
	struct task_struct *t = bpf_task_from_pid(tid);
	if (!t)
		return 0;
	struct held h = { .pid = tgid_of(t), .sig = hold_signal(t) };
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);
	if (st && blocks(t) && !(st->flags & TASK_IN_CALL) && h.sig != SIGSTOP && !bpf_map_update_elem(&holding, &tid, &h, BPF_NOEXIST) &&
	    bpf_send_signal_task(t, h.sig, PIDTYPE_PID, 0) == 0)
		__sync_fetch_and_add(&shared.stops, 1);
	bpf_task_release(t);
	return 0;
}

/* begin_end starts the record of a request that has ended, up to its objects; the
 * caller adds a result's, and calls finish_end. */
static __always_inline int begin_end(struct work *w, struct request *r, struct request_row *row, u64 now, u32 flags)
{
	struct task_struct *t = self();
	struct spec *s = &row->s;
	struct rec_call *c = (struct rec_call *)w->buf;
	bool here = (u64)t->mm == r->mm;
	u32 i;

	compose_call(w, &r->t, s, now, flags & CALL_INTERRUPTED ? 0 : r->ret, flags);
	c->p.pid = r->pid;
	w->no_tracee = !bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	for (i = 0; i < IOT_MAX_OBJS - 1; i++) {
		if (i >= s->nobjects)
			break;
		u32 a = s->objects[i];
		if (a == row->fd_arg)
			put_own_file(w, r, a);
		else if (row->flags & ROW_SPLICE && word(r, 28, 4) & SPLICE_F_FD_IN_FIXED)
			put_open_file(w, (struct file *)slot_file(r->ctx, r->t.args[0]), r->t.args[0], a);
		else if (a < IOT_MAX_ARGS && here)
			put_object(w, r->t.args[a], a);
	}
	return 0;
}

static __always_inline void finish_end(struct work *w, struct request *r, struct request_row *row, struct request_key *k, u32 flags)
{
	u32 i;

	for (i = 0; i < IOT_MAX_CAPS; i++) {
		if (i >= row->s.ncaps)
			break;
		put_memory(w, r, k, &row->s.caps[i], flags);
	}
	put_head(w, r);
	if (row->s.flags & SPEC_HOLD && r->ret > 0 && !failed(r->ret) && !(flags & CALL_INTERRUPTED))
		moved(w, &row->s, r->ret);
	write_call(w, &r->t, flags & CALL_INTERRUPTED ? -1 : r->ret);
	if (w->no_tracee)
		press(w, r->t.tid);
}

/* look_at is called for each request (bpf_for_each_map_elem). */
static long look_at(void *map, struct request_key *k, struct request *r, struct sweep **search)
{
	struct sweep *s = *search;

	if (k->owner != s->owner)
		return 0;
	if (s->what == FIND_THREAD ? s->tid && r->t.tid != s->tid : r->ctx != s->ctx)
		return 0;
	if (s->what == FIND_SILENT && (!(r->state & REQUEST_SILENT) || r->t.enter >= s->before))
		return 0;
	if (s->what == FIND_DATA && word(r, 32, 8) != s->user_data)
		return 0;
	u32 n = s->n;
	if (n >= MAX_FOUND)
		return 1;
	s->found[n] = *k;
	s->n = n + 1;
	return 0;
}
