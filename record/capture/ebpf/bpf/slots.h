// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tables of files that io_uring's requests use instead of descriptors. */
#pragma once

#include "compose.h"

#define MAX_SLOTS 8192
/* put_slots appends the list of descriptors that a table of files is filled with. */
__noinline int put_slots(struct work *w, u32 arg, u64 addr, u32 first, u32 n)
{
	if (!w)
		return 0;
	u64 off = w->len, bytes = 4ull * n, last;

	if (bytes > 4 * MAX_SLOTS)
		bytes = 4 * MAX_SLOTS;
	asm volatile("" : "+r"(bytes));
	if (off > COMPOSE_MAX || !n || bytes > 4 * MAX_SLOTS)
		return 0;
	off += sizeof(struct piece);
	last = (off + 8 + bytes) & ~7ull;
	if (last <= BUF_BYTES - 8)
		*(u64 *)(w->buf + last) = 0;
	*(u32 *)(w->buf + off) = first;
	*(u32 *)(w->buf + off + 4) = n;
	if (!addr || bpf_probe_read_user(w->buf + off + 8, bytes, (void *)addr))
		bytes = 0;
	put_piece(w, arg, addr && !bytes ? PIECE_TRUNCATED : 0, 8 + bytes, 0);
	w->len += pad8(8 + bytes);
	return 0;
}

/* put_registered does so for io_uring_register (linux/io_uring.h). */
__noinline int put_registered(struct work *w, struct task *st, s64 ret)
{
	if (!w || !st)
		return 0;
	struct {
		u32 word[2];
		u64 data, tags;
		u32 nr, zero;
	} u = {};
	u64 addr = st->args[2];

	switch ((u32)st->args[1]) {
	case 2: /* IORING_REGISTER_FILES */
		put_slots(w, 2, addr, 0, st->args[3]);
		return 0;
	case 6: /* IORING_REGISTER_FILES_UPDATE: struct io_uring_files_update */
		if (!bpf_probe_read_user(&u, 16, (void *)addr))
			put_slots(w, 2, u.data, u.word[0], ret);
		return 0;
	case 13: /* IORING_REGISTER_FILES2: struct io_uring_rsrc_register */
		if (!bpf_probe_read_user(&u, 24, (void *)addr))
			put_slots(w, 2, u.word[1] & 1 ? 0 : u.tags, 0, u.word[0]);
		return 0;
	case 14: /* IORING_REGISTER_FILES_UPDATE2: struct io_uring_rsrc_update2 */
		if (!bpf_probe_read_user(&u, 32, (void *)addr))
			put_slots(w, 2, u.data, u.word[0], ret);
		return 0;
	}
	return 0;
}
