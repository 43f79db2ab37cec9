// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writing a composed call: in one record, or, when its content is large, in one
 * and then RecData records, or, as far as it does not fit or cannot be read now,
 * as pending work for the recorder while the thread is held. */
#pragma once

#include "compose.h"

const volatile u64 zeros = 0;

/* copy_some copies n bytes of the program to d at an offset. Where the kernel does not copy
 * into a record by itself, they go through the work space, and n is at most CHUNK_BYTES. */
static __always_inline int copy_some(struct work *w, struct bpf_dynptr *d, u64 at, u64 n, u64 addr)
{
	if (copies_users)
		return bpf_probe_read_user_dynptr(d, at, n, (void *)addr);
	asm volatile("" : "+r"(n));
	if (n > CHUNK_BYTES || bpf_probe_read_user(w->chunk, n, (void *)addr))
		return -1;
	return bpf_dynptr_write(d, at, w->chunk, n, 0);
}

struct copying {
	struct work *w;
	struct bpf_dynptr *d;
};
/* copy_next copies what is next of work.want: up to the end of an element or a chunk. */
static long copy_next(u32 i, struct copying *c)
{
	struct work *w = c->w;
	u64 most = copies_users ? ~0ull : CHUNK_BYTES, base = w->from, len, rest = ~0ull;
	u64 k = w->element;

	if (w->done >= w->want)
		return 1;
	if (w->elements) {
		if (k >= w->elements || k >= MAX_IOVECS)
			return 1;
		base = w->iov[k].base;
		rest = w->iov[k].len;
	}
	if (w->skip >= rest) {
		w->skip -= rest;
		w->element = k + 1;
		return 0;
	}
	base += w->skip;
	rest -= w->skip;
	len = rest < w->want - w->done ? rest : w->want - w->done;
	if (len > most)
		len = most;
	u64 at = w->to + w->done;
	w->done += len; /* before the copy, that less is kept across it */
	w->skip = len == rest ? 0 : w->skip + len;
	w->element = len == rest ? k + 1 : k;
	if (!copy_some(w, c->d, at, len, base))
		return 0;
	w->want = ~0ull;
	return 1;
}

/* copy_range copies bytes [from, from+n) of a bulk to d at an offset. */
static __always_inline int copy_range(struct work *w, struct bulk *b, struct bpf_dynptr *d, u64 at, u64 from, u64 n)
{
	struct copying c = {.w = w, .d = d};
	u32 count = b->count, chunks = copies_users ? 0 : n / CHUNK_BYTES + 1;
	u64 most = copies_users ? ~0ull : CHUNK_BYTES;

	if (!count && n <= most)
		return copy_some(w, d, at, n, b->addr + from);
	w->skip = from;
	w->done = 0;
	w->want = n;
	w->element = 0;
	w->from = b->addr;
	w->elements = count;
	w->to = at;
	each(count + chunks, copy_next, &c);
	return w->done == w->want ? 0 : -1;
}

/* write_inline writes the record with all its content. It returns 0, or -1 if the
 * ring is full, or 1 if some content could not be read (work.failed says which);
 * then nothing was written. */
__noinline int write_inline(struct work *w, u32 shard, u64 total)
{
	if (!w)
		return 0;
	void *rb = bpf_map_lookup_elem(&rings, &shard);
	struct bpf_dynptr d;
	u64 at = w->len;
	u32 i;

	if (!rb || at > BUF_BYTES / 2)
		return -1;
	if (bpf_ringbuf_reserve_dynptr(rb, total, 0, &d)) {
		bpf_ringbuf_discard_dynptr(&d, 0);
		return -1;
	}
	struct rec_call *r = (struct rec_call *)w->buf;
	r->npieces = w->npieces;
	/* The first bulk's head is composed behind the rest, so that one copy does. */
	struct piece *p = (struct piece *)(w->buf + at);
	for (i = 0; i < MAX_BULKS; i++) {
		struct bulk *b = &w->bulk[i];
		if (i >= w->nbulk)
			break;
		if (b->len)
			r->npieces++;
	}
	w->failed = 0;
	w->total = total;
	w->to = at;
	r->nobjects = w->nobjects;
	bpf_dynptr_write(&d, 0, w->buf, at, 0);
	for (i = 0; i < MAX_BULKS; i++) {
		struct bulk *b = &w->bulk[i];
		if (i >= w->nbulk)
			break;
		u64 len = b->len;
		if (!len)
			continue;
		*(u64 *)p = (b->arg & 0xffff) | len << 32;
		p->off = 0;
		bpf_dynptr_write(&d, w->to, p, sizeof(*p), 0);
		w->to += sizeof(*p);
		if (len & 7)
			bpf_dynptr_write(&d, (w->to + len) & ~7ull, (void *)&zeros, 8, 0);
		if (copy_range(w, b, &d, w->to, 0, len))
			w->failed |= 1 << i; /* kept in memory, so that the verifier forgets it */
		w->to += pad8(b->len);
	}
	if (w->failed) {
		bpf_ringbuf_discard_dynptr(&d, BPF_RB_NO_WAKEUP);
		return 1;
	}
	total = w->total;
	bpf_ringbuf_submit_dynptr(&d, wakeup(w, total));
	w->avail += total + 8;
	return 0;
}

/* write_chunk writes the next n bytes of a bulk in a RecData record. */
struct data_head {
	struct rec_data r;
	struct piece p;
};
__noinline int write_chunk(struct work *w, u32 shard, u32 i, u64 n)
{
	if (!w)
		return 0;
	struct rec_call *r = (struct rec_call *)w->buf;
	void *rb = bpf_map_lookup_elem(&rings, &shard);
	struct data_head *h = (struct data_head *)w->area;
	struct bpf_dynptr d;
	u64 total = sizeof(*h) + pad8(n);

	if (!rb || i >= MAX_BULKS)
		return -1;
	struct bulk *b = &w->bulk[i];
	if (bpf_ringbuf_reserve_dynptr(rb, total, 0, &d)) {
		bpf_ringbuf_discard_dynptr(&d, 0);
		return -1;
	}
	__builtin_memset(h, 0, sizeof(*h));
	h->r.p = r->p;
	h->r.p.type = REC_DATA;
	h->r.p.flags = 0;
	h->r.enter = r->enter;
	h->r.npieces = 1;
	h->p.arg = b->arg;
	h->p.flags = b->arg >> 8;
	h->p.len = n;
	h->p.off = b->off;
	w->total = total; /* kept in memory, as n is, for the stack's sake */
	bpf_dynptr_write(&d, 0, h, sizeof(*h), 0);
	if (n & 7)
		bpf_dynptr_write(&d, total - 8, (void *)&zeros, 8, 0);
	if (copy_range(w, b, &d, sizeof(*h), b->off, n)) {
		bpf_ringbuf_discard_dynptr(&d, BPF_RB_NO_WAKEUP);
		return 1;
	}
	total = w->total;
	bpf_ringbuf_submit_dynptr(&d, wakeup(w, total));
	w->avail += total + 8;
	b->off += h->p.len;
	return 0;
}

/* finish_data writes the last RecData record, with the rest as missing. Without room
 * for it the call stays unfinished, which its thread's next record tells. */
struct last_data {
	struct rec_data r;
	struct piece p[MAX_PARTS + 1]; /* 8 */
};
_Static_assert(sizeof(struct last_data) <= 8 * AREA_WORDS, "last_data");
__noinline int finish_data(struct work *w, struct pending *p, u32 shard)
{
	if (!w || !p)
		return 0;
	struct last_data *h = (struct last_data *)w->area;
	u32 i;

	volatile u64 *n = &w->elements; /* pieces so far; in memory, so that the verifier forgets it */
	*n = 0;
	__builtin_memset(h, 0, sizeof(*h));
	h->r.p.type = REC_DATA;
	h->r.p.op = p->op;
	h->r.p.pid = p->pid;
	h->r.p.tid = p->tid;
	h->r.p.flags = DATA_LAST;
	h->r.enter = p->enter;
	for (i = 0; i < MAX_PARTS; i++) {
		struct part *q = &p->parts[i];
		if (i >= p->nparts || q->arg == NO_CONTENT)
			continue;
		struct piece *piece = &h->p[*n & 7];
		piece->arg = q->arg;
		piece->flags = PIECE_MISSING;
		piece->len = q->len;
		piece->off = q->kind == PART_PAGES ? 0 : q->off;
		++*n;
	}
	u64 pieces = *n & 7;
	h->r.npieces = pieces;
	try_small(w, shard, h, sizeof(h->r) + pieces * sizeof(struct piece));
	return 0;
}

/* rest_addr is where the rest of a bulk begins; a vector is read from its start. */
static __always_inline u64 rest_addr(struct bulk *b) { return b->count ? b->addr : b->addr + b->off; }

/* is_changed notes in work.skip that an element of an array is not what it was. */
static long is_changed(u32 i, struct work **p)
{
	struct work *w = *p;
	struct iovec v;

	if (i >= MAX_IOVECS)
		return 1;
	if (!bpf_probe_read_user(&v, sizeof(v), (void *)(w->from + sizeof(v) * i)) && v.base == w->iov[i].base && v.len == w->iov[i].len)
		return 0;
	w->skip = 1;
	return 1;
}

/* rest_kind is how the recorder reads it. An array that the program could use again
 * must still be what it was. */
static __always_inline u32 rest_kind(struct work *w, struct bulk *b)
{
	u32 kind = b->arg >> 16;

	if (kind != PART_VECTOR || !w->kept)
		return kind;
	w->skip = 0;
	w->from = b->addr;
	each(b->count, is_changed, &w);
	return w->skip ? PART_NONE : PART_VECTOR;
}

/* leave_rest turns what is left of a bulk into pending work, or into a piece that
 * is missing. */
__noinline int leave_rest(struct work *w, u32 i, bool may_hold)
{
	if (!w)
		return 0;
	struct rec_call *r = (struct rec_call *)w->buf;
	if (i >= MAX_BULKS)
		return 0;
	struct bulk *b = &w->bulk[i];
	u64 left = b->len - b->off;
	if (!left)
		return 0;
	b->len = b->off;
	u32 kind = may_hold ? rest_kind(w, b) : PART_NONE;
	if (kind != PART_NONE && add_part(w, b->arg, kind, rest_addr(b), left, b->off, b->count)) {
		r->p.flags |= CALL_MORE;
		return 0;
	}
	put_piece(w, b->arg, PIECE_MISSING, left, b->off);
	return 0;
}

/* write_data writes the content of a call whose RecCall has CALL_MORE, as far as
 * the ring may be filled by one call. */
#define MAX_CHUNKS 1024 /* more than a ring has room for (load.go) */
struct writing {
	struct work *w;
	u64 limit;
	u32 shard, zero;
};
static long write_next(u32 k, struct writing *c)
{
	struct work *w = c->w;
	u64 i = w->current;

	if (i >= w->nbulk || i >= MAX_BULKS)
		return 1;
	struct bulk *b = &w->bulk[i];
	u64 n = b->len - b->off;
	if (n > inline_max)
		n = inline_max;
	if (n && k < MAX_CHUNKS && w->avail + n <= c->limit && !write_chunk(w, c->shard, i, n))
		return 0;
	w->current = i + 1;
	u64 left = b->len - b->off;
	u32 j = w->pend.nparts;
	if (!left || j >= MAX_PARTS)
		return 0;
	struct part *p = &w->pend.parts[j];
	p->addr = rest_addr(b);
	p->len = left;
	p->off = b->off;
	p->count = b->count;
	*(u32 *)&p->arg = (b->arg & 0xff) | rest_kind(w, b) << 8;
	w->pend.nparts = j + 1;
	return 0;
}
static __always_inline int write_data(struct work *w, u32 shard)
{
	struct writing c = {.w = w, .limit = block && !w->no_tracee ? ring_bytes / 4 * 3 : ring_bytes, .shard = shard};

	w->current = 0;
	each(MAX_CHUNKS + MAX_BULKS, write_next, &c);
	return 0;
}

/* leave_pending leaves work.pend to the recorder, which does it while the thread is
 * held: now or, within a call, at its end. */
__noinline int leave_pending(void)
{
	struct task *st = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	struct pending_key k = {own_id(), 0};

	if (!st)
		return -1;
	if (st->npending && !bpf_map_lookup_elem(&pendings, &k))
		st->npending = 0; /* done */
	k.n = st->npending;
	struct work *own = this_work(); /* which kernels before 6.4 take for a value, unlike an argument */
	if (!own || bpf_map_update_elem(&pendings, &k, &own->pend, BPF_ANY))
		return -1;
	st->npending++;
	st->flags |= TASK_PENDING;
	if ((st->flags & TASK_IN_CALL) || !hold(st))
		return 0;
	bpf_map_delete_elem(&pendings, &k);
	if (!--st->npending)
		st->flags &= ~TASK_PENDING;
	return -1;
}

/* write_call writes what was composed. */
__noinline int write_call(struct work *w, struct task *st, s64 ret)
{
	if (!w || !st)
		return 0;
	struct rec_call *r = (struct rec_call *)w->buf;
	u32 shard = st->shard & (MAX_SHARDS - 1), i;
	u64 content = 0, total;
	int err;

	void *rb = bpf_map_lookup_elem(&rings, &shard);
	if (!rb)
		return 0;
	w->avail = bpf_ringbuf_query(rb, BPF_RB_AVAIL_DATA);
	for (i = 0; i < MAX_BULKS; i++) {
		if (i >= w->nbulk)
			break;
		content += sizeof(struct piece) + pad8(w->bulk[i].len);
	}
	total = w->len + content;
	if (w->pend.nparts)
		r->p.flags |= CALL_MORE;
	if (!content)
		goto small;
	u64 limit = block && !w->no_tracee ? ring_bytes / 4 * 3 : ring_bytes;
	if (content > inline_max || (block && w->avail + total > limit)) {
		if (!block && w->avail + total > ring_bytes) {
			lose(shard);
			return 0;
		}
		r->p.flags |= CALL_MORE;
		goto small;
	}
	err = write_inline(w, shard, total);
	if (err > 0) { /* again, without what cannot be read */
		for (i = 0; i < MAX_BULKS; i++)
			if (w->failed >> i & 1)
				leave_rest(w, i, !failed(ret));
		content = 0;
		for (i = 0; i < MAX_BULKS; i++)
			if (i < w->nbulk && w->bulk[i].len)
				content += sizeof(struct piece) + pad8(w->bulk[i].len);
		err = write_inline(w, shard, w->len + content);
	}
	if (err) {
		lose(shard);
		return 0;
	}
	goto more;
small:
	r->npieces = w->npieces;
	r->nobjects = w->nobjects;
	total = w->len;
	err = total > BUF_BYTES / 2 ? RING_FULL : output(rb, w->buf, total, wakeup(w, total));
	if (err) {
		lost_by(shard, err);
		return 0;
	}
	w->avail += total + 8;
	if (!(r->p.flags & CALL_MORE))
		return 0;
	write_data(w, shard);
more:
	if (!(r->p.flags & CALL_MORE))
		return 0;
	w->pend.enter = r->enter;
	w->pend.exit = r->exit;
	w->pend.pid = r->p.pid;
	w->pend.tid = r->p.tid;
	w->pend.op = r->p.op;
	w->pend.ret = ret;
	for (i = 0; i < IOT_MAX_ARGS; i++)
		w->pend.args[i] = st->args[i];
	if (blocking() && !w->no_tracee && w->pend.nparts && !leave_pending())
		return 0;
	finish_data(w, &w->pend, shard);
	return 0;
}
