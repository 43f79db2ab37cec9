// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Composing a record in the work space: objects, strings, structures, vectors, and
 * the plan of what content is copied from the program. */
#pragma once

#include "call.h"
#include "hold.h"

#define S_IFMT 0170000 /* linux/stat.h */
#define S_IFSOCK 0140000
#define O_CLOEXEC 02000000
#define O_CREAT 0100
#define O_APPEND 02000
#define FMODE_CREATED (1u << 20) /* linux/fs.h */

/* set_prefix fills in what every record begins with, for a thread. */
static __always_inline void set_prefix(struct prefix *p, u16 type, struct task_struct *t)
{
	p->type = type;
	p->op = 0;
	p->pid = tgid_of(t);
	p->tid = tid_of(t);
	p->flags = 0;
}

/* compose_call starts a RecCall in the work space. */
static __always_inline void compose_call(struct work *w, struct task *st, struct spec *s, u64 now, s64 ret, u32 flags)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct rec_call *r = (struct rec_call *)w->buf;
	u32 i;

	set_prefix(&r->p, REC_CALL, t);
	r->p.tid = st->tid;
	r->p.op = s->op;
	r->p.flags = flags | (st->flags & TASK_COMPAT ? CALL_COMPAT : 0);
	r->enter = st->enter;
	r->exit = now;
	r->cpu = st->cpu;
	r->ret = ret;
	for (i = 0; i < IOT_MAX_ARGS; i++)
		r->args[i] = st->args[i];
	r->nr = st->nr;
	r->zero = 0;
	w->len = sizeof(*r);
	w->npieces = w->nobjects = w->nbulk = w->failed = 0;
	w->pend.nparts = 0;
	w->ends = s->flags & SPEC_ENDS ? ENDS_ALL : s->flags & SPEC_SENDS ? ENDS_DATAGRAMS : ENDS_NONE;
	w->nsockets = 0;
	w->no_tracee = w->kept = false;
}

/* put_delays says of a call of the thread, which compose_call has just started, how long
 * it waited for a processor. */
static __always_inline void put_delays(struct work *w, struct task *st)
{
	struct rec_call *r = (struct rec_call *)w->buf;
	struct delays *d = (struct delays *)(r + 1);

	if (!has_delays())
		return;
	u64 now = waited(bpf_get_current_task_btf());
	d->before = delay_between(st->returned, st->delay);
	d->within = delay_between(st->delay, now);
	st->returned = now;
	r->p.flags |= CALL_DELAYS;
	w->len += sizeof(*d);
}

/* note_position remembers, at the entry of a call that moves a file's position,
 * where that is. If the call then has to wait for others that move it, it is looked
 * at again when they are done (on_contention_end). */
static __always_inline void note_position(struct task *st)
{
	struct file *f = file_of(st->args[0]);

	st->file = (u64)f;
	if (f)
		st->start = MEMBER(f, f_pos);
}

/* settle_position corrects what was seen after the call, which others may have moved
 * on by then, and notes how far: where the call began may have been read too early, if
 * others were done just before it. An append starts at the file's end instead. */
static __always_inline void settle_position(struct work *w, struct task *st, s64 ret)
{
	struct object *o = (struct object *)(w->buf + sizeof(struct rec_call) + (has_delays() ? sizeof(struct delays) : 0));

	if (w->nobjects != 1 || ret <= 0 || o->flags & O_APPEND)
		return;
	u64 past = o->pos - (st->start + ret);
	if (past > 1u << 31)
		return; /* moved back */
	o->pos = st->start + ret;
	o->past = past + 1;
}

/* FILL_FILE fills in an object from an open file and its inode; get reads a member. */
#define FILL_FILE(get) \
	({ \
		struct inode *i = get(f, f_inode); \
		struct super_block *sb = get(i, i_sb); \
		mode = get(f, f_mode); \
		o->ino = get(i, i_ino); \
		o->size = get(i, i_size); \
		o->pos = get(f, f_pos); \
		o->dev = get(sb, s_dev); \
		o->rdev = get(i, i_rdev); \
		o->mode = get(i, i_mode); \
		o->flags = get(f, f_flags); \
		o->nlink = get(i, __i_nlink); \
		o->uid = get(i, i_uid.val); \
		o->gid = get(i, i_gid.val); \
		socket = (u64)get(f, private_data); \
	})
#define DIRECTLY(p, member) ((p)->member)
#define PROBING(p, member) BPF_CORE_READ(p, member)

/* add_file appends an open file; cloexec is of its descriptor. */
static __always_inline int add_file(struct work *w, struct file *f, s32 fd, s32 arg, u32 cloexec)
{
	u64 off = w->len, socket;
	u32 mode;

	if (!f || off > COMPOSE_MAX)
		return 0;
	struct object *o = (struct object *)(w->buf + off);
	if (casts) {
		f = bpf_rdonly_cast(f, bpf_core_type_id_kernel(struct file));
		FILL_FILE(DIRECTLY);
	} else {
		FILL_FILE(PROBING);
	}
	/* The kernel drops O_CREAT after the open; here it says that the open made the file. */
	o->flags = (o->flags & ~(O_CLOEXEC | O_CREAT)) | cloexec | (arg == IOT_RESULT_ARG && mode & FMODE_CREATED ? O_CREAT : 0);
	o->fd = fd;
	*(u64 *)&o->arg = (u8)arg;
	if (arg >= 0 && w->nobjects < 2) {
		u32 k = w->nobjects & 1;
		w->pend.pos[k] = o->pos;
		w->pend.mode[k] = o->mode;
	}
	if (w->ends && (o->mode & S_IFMT) == S_IFSOCK) {
		u32 k = w->nsockets;
		if (k < IOT_MAX_SOCKETS) {
			w->sockets[k].socket = socket;
			w->sockets[k].object = w->nobjects;
			w->nsockets = k + 1;
		}
	}
	w->len = off + sizeof(*o);
	w->nobjects++;
	return 1;
}

static __noinline int put_open_file(struct work *w, struct file *f, s32 fd, s32 arg)
{
	return add_file(w, f, fd, arg, 0);
}

/* put_object appends the calling thread's open file of a descriptor. */
__noinline int put_object(struct work *w, s32 fd, s32 arg)
{
	if (!w)
		return 0;
	struct task_struct *t = self();
	struct fdtable *fdt = t->files->fdt;
	struct file *f = file_of(fd);

	if (!f)
		return 0;
	unsigned long bits = word_at(fdt->close_on_exec + (u32)fd / 64);
	return add_file(w, f, fd, arg, (bits >> (fd & 63)) & 1 ? O_CLOEXEC : 0);
}

/* put_piece appends the head of a piece. */
static __always_inline void put_piece(struct work *w, u8 arg, u8 flags, u32 len, u64 pos)
{
	u64 off = w->len;
	if (off > BUF_BYTES / 2)
		return;
	struct piece *p = (struct piece *)(w->buf + off);
	*(u64 *)p = (u64)arg | (u64)flags << 8 | (u64)len << 32;
	p->off = pos;
	w->len = off + sizeof(*p);
	w->npieces++;
}

/* add_part leaves something for the recorder to read while the thread is held. */
static __always_inline bool add_part(struct work *w, u8 arg, u8 kind, u64 addr, u64 len, u64 pos, u32 count)
{
	if (!blocking() || w->no_tracee)
		return false;
	u32 n = *(volatile u32 *)&w->pend.nparts; /* read last: old verifiers forget the bounds of what is spilled */
	if (n >= MAX_PARTS)
		return false;
	struct part *p = &w->pend.parts[n];
	p->addr = addr;
	p->len = len;
	p->off = pos;
	p->count = count;
	*(u32 *)&p->arg = (u32)arg | (u32)kind << 8;
	w->pend.nparts = n + 1;
	return true;
}

/* put_string appends a string piece without its NUL. It returns false if the
 * memory cannot be read now. */
__noinline int put_string(struct work *w, u64 addr, u8 arg)
{
	if (!w)
		return 0;
	u64 off = w->len;
	if (off > COMPOSE_MAX)
		return 0;
	off += sizeof(struct piece);
	long n = bpf_probe_read_user_str(w->buf + off, IOT_MAX_PATH + 1, (void *)addr);
	if (n < 0)
		return 0;
	u8 flags = 0;
	if (n > 0) /* kernels before 6.13 return 0 for an empty string */
		n--;
	if (n >= IOT_MAX_PATH)
		flags = PIECE_TRUNCATED;
	put_piece(w, arg, flags, n, 0);
	/* pad with zeros: the string's NUL and what follows it */
	off += n;
	if (off <= BUF_BYTES / 2)
		*(u64 *)(w->buf + off) = 0;
	w->len = pad8(off);
	return 1;
}

/* put_struct appends up to STRUCT_MAX bytes. */
#define STRUCT_MAX 4096
__noinline int put_struct(struct work *w, u64 addr, u8 arg, u64 n, u64 pos)
{
	if (!w)
		return 0;
	u64 off = w->len;
	if (off > COMPOSE_MAX || n > STRUCT_MAX)
		return 0;
	off += sizeof(struct piece);
	/* the last word's bytes behind the structure */
	*(u64 *)(w->buf + bounded(off) + (n & (STRUCT_MAX - 8))) = 0;
	if (bpf_probe_read_user(w->buf + bounded(off), bounded(n), (void *)addr))
		return 0;
	put_piece(w, arg, 0, n, pos);
	w->len += pad8(n);
	return 1;
}

static __always_inline void add_bulk(struct work *w, u32 arg, u64 addr, u64 len, u32 count)
{
	u32 n = w->nbulk;
	if (n >= MAX_BULKS) {
		put_piece(w, arg, PIECE_MISSING, len, 0);
		return;
	}
	struct bulk *b = &w->bulk[n];
	b->addr = addr;
	b->len = len;
	b->off = 0;
	b->count = count;
	b->arg = arg;
	w->nbulk = n + 1;
}
#define BULK(arg, flags, kind) ((u32)(arg) | (u32)(flags) << 8 | (u32)(kind) << 16)

/* plan_content plans to copy what is wanted of n bytes; the rest is omitted. */
static __always_inline void plan_content(struct work *w, struct cap *c, u8 arg, u8 flags, u32 kind, u64 addr, u64 n, u32 count)
{
	u64 keep = c->keep;

	if (n > keep)
		put_piece(w, arg, flags | PIECE_OMITTED, n - keep, keep);
	else
		keep = n;
	if (keep)
		add_bulk(w, BULK(arg, flags, kind), addr, keep, count);
}

/* read_iovecs reads an iovec array into the work space. That of a 32-bit program has
 * elements of half the size. */
#define IOVEC32_BYTES 8
struct iovecs {
	struct work *w;
	u64 addr;
};
static long read_iovec32(u32 i, struct iovecs *c)
{
	struct work *w = c->w;
	u32 v[2];

	if (i >= MAX_IOVECS)
		return 1;
	if (bpf_probe_read_user(v, sizeof(v), (void *)(c->addr + IOVEC32_BYTES * i))) {
		w->failed = 1;
		return 1;
	}
	w->iov[i].base = v[0];
	w->iov[i].len = v[1];
	return 0;
}
__noinline int read_iovecs(struct work *w, u64 addr, u64 count, u32 size)
{
	if (!w)
		return 0;
	struct iovecs v = {.w = w, .addr = addr};

	if (size != IOVEC32_BYTES)
		return bpf_probe_read_user(w->iov, bounded(count * IOVEC_BYTES), (void *)addr);
	w->failed = 0;
	each(count, read_iovec32, &v);
	return w->failed ? -1 : 0;
}

/* add_length adds the length of an element of work.iov to work.want. */
static long add_length(u32 i, struct work **p)
{
	struct work *w = *p;

	if (i >= MAX_IOVECS)
		return 1;
	w->want += w->iov[i].len;
	return 0;
}

/* plan_vector appends the iovec array in work.iov, read at addr, and plans its
 * elements' bytes. */
static __always_inline int plan_vector(struct work *w, struct cap *c, u64 addr, u64 count, s64 ret)
{
	u64 off = w->len, total = 0;

	if (count > MAX_IOVECS || off > COMPOSE_MAX)
		return 1;
	u64 bytes = count * IOVEC_BYTES;
	put_piece(w, c->arg, PIECE_SHAPE, bytes, 0);
	bpf_probe_read_kernel(w->buf + bounded(off + sizeof(struct piece)), bounded(bytes), w->iov);
	w->len += bytes;
	if (failed(ret))
		return 1;
	total = ret;
	if (c->len == IOT_LEN_VEC_ALL) {
		w->want = 0;
		each(count, add_length, &w);
		total = w->want;
	}
	plan_content(w, c, c->arg, 0, c->bytes == IOVEC32_BYTES ? PART_VECTOR32 : PART_VECTOR, addr, total, count);
	return 1;
}

/* put_vector appends the iovec array and plans its elements' bytes. */
__noinline int put_vector(struct work *w, struct cap *c, u64 addr, u64 count, s64 ret)
{
	if (!w || !c || !count || count > MAX_IOVECS)
		return 1; /* the kernel refused it */
	if (read_iovecs(w, addr, count, c->bytes)) {
		put_piece(w, c->arg, PIECE_SHAPE | PIECE_MISSING, count * IOVEC_BYTES, 0);
		return 1;
	}
	return plan_vector(w, c, addr, count, ret);
}

/* moved records the content of a call that moved it inside the kernel. */
static __always_inline void moved(struct work *w, struct spec *s, s64 ret)
{
	u64 n = ret, keep = s->hold_keep;

	if (n > keep)
		put_piece(w, s->hold_arg, PIECE_OMITTED, n - keep, keep);
	else
		keep = n;
	if (keep && !add_part(w, s->hold_arg, PART_MOVED, 0, keep, 0, 0))
		put_piece(w, s->hold_arg, PIECE_MISSING, keep, 0);
}
