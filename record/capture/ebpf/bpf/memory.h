// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The memory of one argument, by the operation table's rules. The frequent ones are in
 * put_capture; all others in put_rare and what it calls. */
#pragma once

#include "message.h"

/* put_rare composes or plans the memory of one argument by a rule that is not in
 * put_capture. Functions that are not static are verified once, for any arguments. */
__noinline int put_rare(struct work *w, struct task *st, struct cap *c, s64 ret)
{
	if (!w || !st || !c)
		return 0;
	u64 v = arg_of(st, c->len_arg);

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
	return put_bytes(w, c->arg, arg_of(st, c->arg), v >> 16 & 0x3fff, ret);
}

/* put_capture composes or plans the memory of one argument. */
__noinline int put_capture(struct work *w, struct task *st, struct cap *c, s64 ret)
{
	if (!w || !st || !c)
		return 0;
	u64 addr = arg_of(st, c->arg);
	u64 n = 0, v;
	u8 arg = c->arg, flags = 0;

	if (!addr)
		return 0;
	if (c->cond_mask) {
		v = arg_of(st, c->cond_arg) & c->cond_bits;
		if (v > 63 || !(c->cond_mask >> v & 1))
			return 0;
	}
	if (c->len >= IOT_LEN_ARRAY)
		return put_rare(w, st, c, ret);
	if (c->len == IOT_LEN_NUL) {
		put_text(w, arg, addr, ret);
		return 0;
	}
	v = arg_of(st, c->len_arg);
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
	u64 addr = arg_of(st, s->offer_arg);
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
