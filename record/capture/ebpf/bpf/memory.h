// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The memory of one argument, by the operation table's rules. The frequent ones are in
 * put_capture; all others in put_rare and what it calls. */
#pragma once

#include "compose.h"

#define FAILED_BYTES (64 << 10) /* of a length that the kernel refused */
#define MAX_BYTES 0x7fffffff    /* of one argument */
#define MAX_COUNT (1 << 20)     /* elements of an array */

static __always_inline struct cap *command_of(struct work *w, u64 value)
{
	struct rec_call *r = (struct rec_call *)w->buf;
	u64 key = (u64)r->p.op << 32 | (u32)value;
	return bpf_map_lookup_elem(&commands, &key);
}

static __always_inline void put_text(struct work *w, u8 arg, u64 addr, s64 ret)
{
	if (!put_string(w, addr, arg) && (failed(ret) || !add_part(w, arg, PART_STRING, addr, 0, 0, 0)))
		put_piece(w, arg, PIECE_MISSING, 0, 0);
}

/* put_bytes composes or plans n bytes. */
static __noinline int put_bytes(struct work *w, u8 arg, u64 addr, u64 n, s64 ret)
{
	u8 flags = 0;

	if (!n)
		return 0;
	if (n <= STRUCT_MAX && put_struct(w, addr, arg, n, 0))
		return 0;
	if (failed(ret) && n > FAILED_BYTES) {
		n = FAILED_BYTES;
		flags = PIECE_TRUNCATED;
	}
	if (n > MAX_BYTES)
		n = MAX_BYTES;
	add_bulk(w, BULK(arg, flags, PART_BYTES), addr, n, 0);
	return 0;
}

/* count_at reads the number that a structure holds at an offset; 0 if it cannot. */
static __always_inline u64 count_at(u64 addr, u8 width)
{
	u64 n = 0;
	if (width == 2)
		bpf_probe_read_user(&n, 2, (void *)addr);
	else if (width == 4)
		bpf_probe_read_user(&n, 4, (void *)addr);
	else
		bpf_probe_read_user(&n, 8, (void *)addr);
	return n < MAX_COUNT ? n : MAX_COUNT;
}

/* tail_count is how many elements a head counts. */
static __noinline u64 tail_count(struct cap *c, u64 addr)
{
	u64 n = count_at(addr + c->tail_off, c->tail_width), max;

	if (c->tail_max) {
		max = count_at(addr + c->tail_max, 4);
		if (n > max)
			n = max;
	}
	return n;
}

/* put_target composes or plans what a structure points to. */
static __noinline int put_target(struct work *w, struct cap *c, u8 arg, u64 addr, s64 ret)
{
	u64 n = tail_count(c, addr) * c->tail_elem, p = 0;

	if (c->dir == IOT_DIR_OUT && n > (u64)ret)
		n = ret;
	bpf_probe_read_user(&p, 8, (void *)(addr + c->tail_ptr));
	return p ? put_bytes(w, arg | IOT_PART_TARGET, p, n, ret) : 0;
}

/* bits_bytes is the size of a bit map. */
static __always_inline u64 bits_bytes(u64 bits)
{
	u64 n = (u32)bits < MAX_COUNT ? (u32)bits : MAX_COUNT;
	return (n + 63) / 64 * 8;
}

/* put_counted composes or plans the memory of an argument by any rule but those of
 * vectors and messages. The row may be that of a command. */
static __noinline int put_counted(struct work *w, struct task *st, struct cap *c, u32 arg, s64 ret)
{
	u64 addr = st->args[arg < 6 ? arg : 0], n = 0, v = st->args[c->len_arg < 6 ? c->len_arg : 0];
	u32 len = 0;

	if (c->dir == IOT_DIR_OUT && failed(ret) && c->len != IOT_LEN_INTERRUPTED)
		return 0;
	switch (c->len) {
	case IOT_LEN_NUL:
		put_text(w, arg, addr, ret);
		return 0;
	case IOT_LEN_CONST:
	case IOT_LEN_REF:
		n = c->bytes;
		break;
	case IOT_LEN_ARG:
		n = v + c->bytes;
		break;
	case IOT_LEN_POSITIVE:
		n = ret > 0 ? c->bytes : 0;
		break;
	case IOT_LEN_INTERRUPTED:
		n = ret == -4 /* EINTR */ || ret == -516 /* ERESTART_RESTARTBLOCK */ ? c->bytes : 0;
		break;
	case IOT_LEN_ARRAY:
		n = (u64)((u32)v < MAX_COUNT ? (u32)v : MAX_COUNT) * c->bytes;
		break;
	case IOT_LEN_RET_ARRAY:
		n = ret;
		if (c->len_arg != IOT_NO_ARG && n > (u32)v)
			n = (u32)v;
		n *= c->bytes;
		break;
	case IOT_LEN_BITS:
		n = bits_bytes(v);
		break;
	case IOT_LEN_PAGES:
		n = (v + c->bytes - 1) / c->bytes;
		break;
	case IOT_LEN_PTR:
		if (v)
			bpf_probe_read_user(&len, 4, (void *)v);
		n = len;
		if (n > st->offered)
			n = st->offered;
		if (n > c->bytes)
			n = c->bytes;
		break;
	case IOT_LEN_TAIL:
		n = c->bytes;
		if (!failed(ret))
			n += tail_count(c, addr) * c->tail_elem;
		break;
	}
	put_bytes(w, arg, addr, n, ret);
	if (c->len == IOT_LEN_REF)
		put_target(w, c, arg, addr, ret);
	return 0;
}

#include "message.h"

/* put_rare composes or plans the memory of one argument by a rule that is not in
 * put_capture. Functions that are not static are verified once, for any arguments. */
__noinline int put_rare(struct work *w, struct task *st, struct cap *c, s64 ret)
{
	if (!w || !st || !c)
		return 0;
	u64 v = st->args[c->len_arg < 6 ? c->len_arg : 0];

	if (c->len == IOT_LEN_MSG || c->len == IOT_LEN_MSGS)
		return put_messages(w, st, c, ret);
	if (c->len != IOT_LEN_COMMAND)
		return put_counted(w, st, c, c->arg, ret);
	struct cap *k = command_of(w, v);
	if (k)
		return k->kind < IOT_KIND_PATH ? 0 : put_counted(w, st, k, c->arg, ret);
	/* An ioctl request says of itself what it moves (asm-generic/ioctl.h). */
	struct rec_call *r = (struct rec_call *)w->buf;
	u32 dir = v >> 30 & 3;
	if (r->p.op != IOT_OP_IOCTL || !dir || (dir == 2 && failed(ret)))
		return 0;
	return put_bytes(w, c->arg, st->args[c->arg < 6 ? c->arg : 0], v >> 16 & 0x3fff, ret);
}

/* put_capture composes or plans the memory of one argument. */
__noinline int put_capture(struct work *w, struct task *st, struct cap *c, s64 ret)
{
	if (!w || !st || !c)
		return 0;
	u64 addr = st->args[c->arg < 6 ? c->arg : 0];
	u64 n = 0, v;
	u8 arg = c->arg, flags = 0;

	if (!addr)
		return 0;
	if (c->cond_mask) {
		v = st->args[c->cond_arg < 6 ? c->cond_arg : 0] & c->cond_bits;
		if (v > 63 || !(c->cond_mask >> v & 1))
			return 0;
	}
	if (c->len >= IOT_LEN_ARRAY)
		return put_rare(w, st, c, ret);
	if (c->len == IOT_LEN_NUL) {
		put_text(w, arg, addr, ret);
		return 0;
	}
	v = st->args[c->len_arg < 6 ? c->len_arg : 0];
	if (c->len == IOT_LEN_VEC || c->len == IOT_LEN_VEC_ALL)
		return put_vector(w, c, addr, v, ret);
	if (c->dir == IOT_DIR_OUT && failed(ret))
		return 0;
	switch (c->len) {
	case IOT_LEN_CONST:
		if (!put_struct(w, addr, arg, c->bytes, 0) &&
		    (failed(ret) || !add_part(w, arg, PART_BYTES, addr, c->bytes, 0, 0)))
			put_piece(w, arg, PIECE_MISSING, c->bytes, 0);
		return 0;
	case IOT_LEN_ARG:
		n = v + c->bytes;
		if (failed(ret) && n > FAILED_BYTES) {
			n = FAILED_BYTES;
			flags = PIECE_TRUNCATED;
		}
		break;
	case IOT_LEN_RET:
		if (failed(ret))
			return 0;
		n = ret;
		if (c->len_arg != IOT_NO_ARG && n > v)
			n = v;
		n += c->bytes;
		break;
	}
	if (!n)
		return 0;
	if (n > MAX_BYTES)
		n = MAX_BYTES;
	plan_content(w, c, arg, flags, PART_BYTES, addr, n, 0);
	return 0;
}

/* note_offer remembers how much room a call was told of. */
__noinline int note_offer(struct task *st, struct spec *s)
{
	if (!st || !s)
		return 0;
	u64 addr = st->args[s->offer_arg < 6 ? s->offer_arg : 0];
	u32 n;

	st->offered = ~0ull;
	if (addr && !bpf_probe_read_user(&n, sizeof(n), (void *)(addr + s->offer_off)))
		st->offered = n;
	return 0;
}

/* put_offer composes that, of a call that overwrote it. */
__noinline int put_offer(struct work *w, struct task *st, struct spec *s)
{
	if (!w || !st || !s)
		return 0;
	u64 off = w->len;

	if (st->offered == ~0ull || off > COMPOSE_MAX)
		return 0;
	put_piece(w, s->offer_arg | IOT_PART_BEFORE, 0, 4, 0);
	*(u64 *)(w->buf + off + sizeof(struct piece)) = (u32)st->offered;
	w->len += 8;
	return 0;
}
