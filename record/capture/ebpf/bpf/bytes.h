// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The memory of one argument whose length the call or the memory itself says: all rules of
 * the operation table but those of vectors and messages. */
#pragma once

#include "compose.h"

#define FAILED_BYTES (64 << 10) /* of a length that the kernel refused */
#define MAX_BYTES 0x7fffffff    /* of one argument */
#define MAX_COUNT (1 << 20)     /* elements of an array */

/* What fcntl's commands, ioctl's requests and the like make of an argument: by
 * operation << 32 | value. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct cap);
} commands SEC(".maps");

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
__noinline int put_bytes(struct work *w, u8 arg, u64 addr, u64 n, s64 ret)
{
	if (!w)
		return 0;
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
__noinline u64 tail_count(struct cap *c, u64 addr)
{
	if (!c)
		return 0;
	u64 n = count_at(addr + c->tail_off, c->tail_width), max;

	if (c->tail_max) {
		max = count_at(addr + c->tail_max, 4);
		if (n > max)
			n = max;
	}
	return n;
}

/* put_target composes or plans what a structure points to. */
__noinline int put_target(struct work *w, struct cap *c, u8 arg, u64 addr, s64 ret)
{
	if (!w || !c)
		return 0;
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
__noinline int put_counted(struct work *w, struct task *st, struct cap *c, u32 arg, s64 ret)
{
	if (!w || !st || !c)
		return 0;
	u64 addr = arg_of(st, arg), n = 0, v = arg_of(st, c->len_arg);
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
