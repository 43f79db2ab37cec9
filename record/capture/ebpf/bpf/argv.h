// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is read at the entry of a call: what it will overwrite, and of execve the path and the argument vector, in a
 * RecEnter. Their pages may not be resident, since the kernel has not read them
 * yet; then they come from the kernel's own copies when the new program is in
 * place, or from the program after a call that failed. */
#pragma once

#include "emit.h"

#define MAX_ARGV (1 << 18)
#define ARGV_BIG (3 << 20)
#define MAX_STRING (128 << 10) /* MAX_ARG_STRLEN (linux/binfmts.h) */

/* pointer_of reads one of a vector's pointers; those of 32-bit programs have 4 bytes. */
#define POINTER32_BYTES 4
static __always_inline int pointer_of(u64 *p, u64 addr, u32 i, u32 size)
{
	*p = 0;
	if (size == POINTER32_BYTES)
		return bpf_probe_read_user(p, POINTER32_BYTES, (void *)(addr + 4ull * i));
	return bpf_probe_read_user(p, sizeof(*p), (void *)(addr + 8ull * i));
}

struct vector_of_strings {
	struct work *w;
	u64 addr;
	u32 size, zero;
};
static long put_next(u32 i, struct vector_of_strings *c)
{
	struct work *w = c->w;
	u64 p, off = w->done;
	long n;

	if (off > COMPOSE_MAX + ARGV_SMALL) {
		w->failed = 2;
		return 1;
	}
	if (pointer_of(&p, c->addr, i, c->size)) {
		w->failed = 1;
		return 1;
	}
	if (!p)
		return 1;
	n = bpf_probe_read_user_str(w->buf + off, ARGV_SMALL, (void *)p);
	if (n <= 0 || n >= ARGV_SMALL) {
		w->failed = n <= 0 ? 1 : 2;
		return 1;
	}
	w->done += n;
	return 0;
}

/* put_argv composes a vector of up to ARGV_SMALL bytes. It returns its length, -1
 * if it cannot be read, -2 if it is longer. */
__noinline long put_argv(struct work *w, u64 addr, u32 size)
{
	struct vector_of_strings c = {.w = w, .addr = addr, .size = size};
	long n;

	if (!w)
		return 0;
	w->done = w->len + sizeof(struct piece);
	w->failed = 0;
	each(MAX_ARGV, put_next, &c);
	if (w->failed)
		return -(long)w->failed;
	n = w->done - w->len - sizeof(struct piece);
	return n > 0 ? n - 1 : 0; /* without the last NUL */
}

struct text {
	struct work *w;
	struct bpf_dynptr *d;
	u64 at, max, addr;
};
static long copy_chunk(u32 i, struct text *c)
{
	struct work *w = c->w;
	u64 off = w->skip;
	long n = bpf_probe_read_user_str(w->chunk, CHUNK_BYTES, (void *)(c->addr + off));

	if (n <= 0 || n > CHUNK_BYTES || off + n > c->max || bpf_dynptr_write(c->d, c->at + off, w->chunk, n, 0)) {
		w->skip = 0;
		return 1;
	}
	w->skip = off + n;
	if (n < CHUNK_BYTES)
		return 1;
	w->skip--; /* its NUL is the copy's, not the program's */
	return 0;
}

/* copy_text copies a string of the program to d at an offset, up to max bytes with its NUL,
 * and returns how many it copied; not more than 0 if it cannot. */
static __noinline long copy_text(struct work *w, struct bpf_dynptr *d, u64 at, u64 max, u64 addr)
{
	struct text c = {.w = w, .d = d, .at = at, .max = max, .addr = addr};

	if (copies_users)
		return bpf_probe_read_user_str_dynptr(d, at, max, (void *)addr);
	w->skip = 0;
	each(MAX_STRING / (CHUNK_BYTES - 1) + 1, copy_chunk, &c);
	return w->skip;
}

struct big_argv {
	struct work *w;
	struct bpf_dynptr *d;
	u64 addr, max;
	u32 size, flags;
};
static long copy_string(u32 i, struct big_argv *c)
{
	struct work *w = c->w;
	u64 p, off = w->done;

	if (pointer_of(&p, c->addr, i, c->size)) {
		c->flags = PIECE_TRUNCATED;
		return 1;
	}
	if (!p)
		return 1;
	long n = copy_text(w, c->d, off, c->max - off, p);
	if (n <= 0 || off + n >= c->max) {
		c->flags = PIECE_TRUNCATED;
		return 1;
	}
	w->done = off + n;
	return 0;
}

/* write_big_argv writes the RecEnter of a vector that is too long to compose: into
 * a record that is as long as it may get. */
__noinline int write_big_argv(struct work *w, u32 shard, u64 addr, u8 arg, u32 size)
{
	if (!w)
		return 0;
	struct rec_data *r = (struct rec_data *)w->buf;
	void *rb = bpf_map_lookup_elem(&rings, &shard);
	u64 at = w->len, max = ring_bytes / 4;
	struct piece h = {};
	struct bpf_dynptr d;

	if (max > ARGV_BIG)
		max = ARGV_BIG;
	if (!rb || at > BUF_BYTES / 2)
		return -1;
	if (bpf_ringbuf_reserve_dynptr(rb, max, 0, &d)) {
		bpf_ringbuf_discard_dynptr(&d, 0);
		return -1;
	}
	struct big_argv c = {.w = w, .d = &d, .addr = addr, .max = max, .size = size};
	r->npieces = w->npieces + 1;
	bpf_dynptr_write(&d, 0, w->buf, at, 0);
	at += sizeof(h);
	w->done = at;
	each(MAX_ARGV, copy_string, &c);
	h.arg = arg;
	h.flags = c.flags;
	h.len = w->done > at ? w->done - at - 1 : 0;
	bpf_dynptr_write(&d, at - sizeof(h), &h, sizeof(h), 0);
	bpf_ringbuf_submit_dynptr(&d, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void start_entry(struct work *w, struct task *st)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct rec_data *r = (struct rec_data *)w->buf;
	set_prefix(&r->p, REC_ENTER, t);
	r->p.tid = st->tid;
	r->enter = st->enter;
	*(u64 *)&r->npieces = 0;
	w->len = sizeof(*r);
	w->npieces = 0;
}

static __always_inline void end_entry(struct work *w, struct task *st)
{
	struct rec_data *r = (struct rec_data *)w->buf;
	u64 n = w->len;
	r->npieces = w->npieces;
	if (n <= BUF_BYTES)
		put_small(w, st->shard, w->buf, n);
}

/* finish_strings makes n bytes at work.len into a piece. */
static __always_inline void finish_strings(struct work *w, u8 arg, u8 flags, u64 n)
{
	u64 off;
	put_piece(w, arg, flags, n, 0);
	off = w->len + n;
	if (off <= BUF_BYTES - 16)
		*(u64 *)(w->buf + off) = 0;
	w->len = pad8(off);
}

/* put_at_entry composes one of what try_entry does. It returns 1 if it wrote the RecEnter. */
__noinline int put_at_entry(struct work *w, struct task *st, struct cap *c, bool must)
{
	if (!w || !st || !c)
		return 0;
	u64 addr = arg_of(st, c->arg);

	if (c->when != IOT_AT_ENTRY || !addr)
		return 0;
	if (c->kind != IOT_KIND_STRINGS) {
		if (put_string(w, addr, c->arg))
			return 0;
	} else {
		long n = put_argv(w, addr, c->bytes);
		if (n == -2 && !write_big_argv(w, st->shard, addr, c->arg, c->bytes))
			return 1;
		if (n >= 0) {
			finish_strings(w, c->arg, 0, n);
			return 0;
		}
	}
	if (!must)
		return -1;
	put_piece(w, c->arg, PIECE_MISSING, 0, 0);
	return 0;
}

/* try_entry composes and writes the RecEnter. Unless it must, it writes nothing if
 * something cannot be read. */
__noinline int try_entry(struct work *w, struct task *st, struct spec *s, bool must)
{
	if (!w || !st || !s)
		return 0;
	u32 i;

	start_entry(w, st);
	for (i = 0; i < IOT_MAX_CAPS; i++) {
		if (i >= s->ncaps)
			break;
		int done = put_at_entry(w, st, &s->caps[i], must);
		if (done)
			return done < 0 ? -1 : 0;
	}
	end_entry(w, st);
	return 0;
}

/* put_before composes one of what record_before does. */
__noinline int put_before(struct work *w, struct task *st, struct cap *c)
{
	u64 n, all;

	if (!w || !st || !c)
		return 0;
	u64 addr = arg_of(st, c->arg);
	if (c->when != IOT_AT_BOTH || !addr)
		return 0;
	all = c->len == IOT_LEN_BITS ? bits_bytes(arg_of(st, c->len_arg)) : c->bytes;
	n = all < STRUCT_MAX ? all : STRUCT_MAX;
	if (n && !put_struct(w, addr, c->arg | IOT_PART_BEFORE, n, 0))
		n = 0;
	if (n < all)
		put_piece(w, c->arg | IOT_PART_BEFORE, PIECE_MISSING, all - n, n);
	return 0;
}

/* record_before writes what a call will overwrite. */
__noinline int record_before(struct work *w, struct task *st, struct spec *s)
{
	u32 i;

	if (!w || !st || !s)
		return 0;
	start_entry(w, st);
	for (i = 0; i < IOT_MAX_CAPS; i++) {
		if (i >= s->ncaps)
			break;
		put_before(w, st, &s->caps[i]);
	}
	if (w->npieces)
		end_entry(w, st);
	return 0;
}

static __always_inline void record_entry(struct work *w, struct task *st, struct spec *s)
{
	if (try_entry(w, st, s, false))
		st->flags |= TASK_EXEC_LATE;
}

static __always_inline void record_entry_again(struct work *w, struct task *st, struct spec *s)
{
	st->flags &= ~TASK_EXEC_LATE;
	try_entry(w, st, s, true);
}

/* write_bytes writes the composed RecEnter with n more bytes of the program. */
static __noinline int write_bytes(struct work *w, u32 shard, u32 arg_flags, u64 addr, u64 n)
{
	struct rec_data *r = (struct rec_data *)w->buf;
	void *rb = bpf_map_lookup_elem(&rings, &shard);
	u64 at = w->len;
	struct piece h = {};
	struct bpf_dynptr d;

	if (!rb || at > BUF_BYTES / 2)
		return -1;
	if (bpf_ringbuf_reserve_dynptr(rb, at + sizeof(h) + pad8(n), 0, &d)) {
		bpf_ringbuf_discard_dynptr(&d, 0);
		return -1;
	}
	r->npieces = w->npieces + 1;
	h.arg = arg_flags;
	h.flags = arg_flags >> 8;
	h.len = n;
	bpf_dynptr_write(&d, 0, w->buf, at, 0);
	bpf_dynptr_write(&d, at, &h, sizeof(h), 0);
	at += sizeof(h);
	if (n & 7)
		bpf_dynptr_write(&d, (at + n) & ~7ull, (void *)&zeros, 8, 0);
	w->bulk[0] = (struct bulk){.addr = addr, .len = n};
	if (copy_range(w, &w->bulk[0], &d, at, 0, n)) {
		bpf_ringbuf_discard_dynptr(&d, BPF_RB_NO_WAKEUP);
		return -1;
	}
	bpf_ringbuf_submit_dynptr(&d, BPF_RB_NO_WAKEUP);
	return 0;
}

/* record_entry_late writes the RecEnter from what the kernel keeps of a successful
 * execve. A script's vector is its interpreter's. */
static __noinline int record_entry_late(struct work *w, struct task *st, struct linux_binprm *bprm)
{
	struct task_struct *t = self();
	struct spec *s = spec_of(st);
	u64 off, n, start = t->mm->arg_start, stop = t->mm->arg_end;
	bool script = bprm->interp != bprm->filename;
	long len;
	u8 path_arg;

	if (!s)
		return 0;
	st->flags &= ~TASK_EXEC_LATE;
	path_arg = s->caps[0].arg;
	start_entry(w, st);
	off = w->len + sizeof(struct piece);
	len = bpf_probe_read_kernel_str(w->buf + (off & 0xff), IOT_MAX_PATH, bprm->filename);
	if (len > 0)
		finish_strings(w, path_arg, 0, (len - 1) & 0xfff);
	else
		put_piece(w, path_arg, PIECE_MISSING, 0, 0);
	n = stop - start;
	u8 flags = script ? PIECE_TRUNCATED : 0;
	u64 max = ring_bytes / 4 < ARGV_BIG ? ring_bytes / 4 : ARGV_BIG;
	if (n > max) {
		n = max;
		flags = PIECE_TRUNCATED;
	}
	if (!n || write_bytes(w, st->shard, (path_arg + 1) | (u32)flags << 8, start, n - 1)) {
		put_piece(w, path_arg + 1, PIECE_MISSING, 0, 0);
		end_entry(w, st);
	}
	return 0;
}
