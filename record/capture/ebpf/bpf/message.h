// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Messages of sockets, and the descriptors that stand in memory. */
#pragma once

#include "bytes.h"

#define NAME_BYTES 128          /* sizeof(struct sockaddr_storage) */
#define CONTROL_BYTES (1 << 20) /* more than net.core.optmem_max lets pass */

struct user_msghdr {
	u64 name;
	u32 namelen, pad;
	u64 iov, iovlen, control, controllen;
	u32 flags, pad2;
};
_Static_assert(sizeof(struct user_msghdr) == 56, "user_msghdr");
#define MMSGHDR_BYTES 64 /* with msg_len behind it */

/* put_part appends a part of one message behind those of others. */
static __always_inline void put_part(struct work *w, u8 arg, u64 addr, u64 n, u64 pos)
{
	if (!put_struct(w, addr, arg, n, pos) && !add_part(w, arg, PART_BYTES, addr, n, pos, 0))
		put_piece(w, arg, PIECE_MISSING, n, pos);
}

/* cut_next cuts an element of the vector to the bytes that are left in work.want. */
static long cut_next(u32 i, struct work **p)
{
	struct work *w = *p;
	u64 k = w->element + i;

	if (k >= MAX_IOVECS)
		return 1;
	u64 n = w->iov[k].len;
	if (n > w->want)
		n = w->want;
	w->iov[k].len = n;
	w->want -= n;
	w->data += n;
	return 0;
}

/* put_iov appends a message's iovec array and adds those elements, cut to the bytes
 * that were moved, to the vector of all messages. */
static __always_inline int put_iov(struct work *w, u8 arg, u64 addr, u64 count, u64 moved)
{
	u64 off = w->len, base = w->niov, bytes = count * IOVEC_BYTES;

	if (!count || count > MAX_IOVECS || base > MAX_IOVECS || base + count > MAX_IOVECS || off > COMPOSE_MAX)
		return 0;
	if (bpf_probe_read_user(&w->iov[base], bounded(bytes), (void *)addr)) {
		put_piece(w, arg, PIECE_SHAPE | PIECE_MISSING, bytes, w->shapes);
		return 0;
	}
	put_piece(w, arg, PIECE_SHAPE, bytes, w->shapes);
	bpf_probe_read_kernel(w->buf + bounded(off + sizeof(struct piece)), bounded(bytes), &w->iov[base]);
	w->len += bytes;
	w->shapes += bytes;
	w->niov = base + count;
	w->want = moved;
	w->element = base;
	each(count, cut_next, &w);
	return 0;
}

/* put_message appends what one message points to. room is what its sender's address
 * may take. */
__noinline int put_message(struct work *w, u8 arg, u64 addr, u64 moved, u64 room)
{
	struct user_msghdr h;
	u64 n;

	if (!w || bpf_probe_read_user(&h, sizeof(h), (void *)addr))
		return 0; /* the structure is missing, and its piece says so */
	n = h.namelen < room ? h.namelen : room;
	if (n > NAME_BYTES)
		n = NAME_BYTES;
	if (h.name && n) {
		put_part(w, arg | IOT_PART_NAME, h.name, n, w->names);
		w->names += n;
	}
	put_iov(w, arg | IOT_PART_DATA, h.iov, h.iovlen, moved);
	w->done = h.iov;
	n = h.controllen < CONTROL_BYTES ? h.controllen : CONTROL_BYTES;
	if (!h.control || !n)
		return 0;
	if (n <= STRUCT_MAX || w->controls)
		put_part(w, arg | IOT_PART_CONTROL, h.control, n, w->controls);
	else
		add_bulk(w, BULK(arg | IOT_PART_CONTROL, 0, PART_BYTES), h.control, n, 0);
	w->controls += n;
	return 0;
}

/* fits says whether the messages can be composed here. If not, the recorder reads
 * them while the thread is held. */
__noinline int fits(struct work *w, u64 addr, u64 count)
{
	if (!w)
		return 0;
	struct user_msghdr h;
	u32 i;

	if (count > IOT_MAX_MESSAGES)
		return 0;
	w->done = w->want = w->len + count * MMSGHDR_BYTES;
	w->skip = 0;
	repeat(i, count, IOT_MAX_MESSAGES) {
		if (bpf_probe_read_user(&h, sizeof(h), (void *)(addr + MMSGHDR_BYTES * i)))
			break;
		u64 n = h.iovlen, m = h.controllen;
		if (n > MAX_IOVECS || (h.control && m > STRUCT_MAX))
			return 0;
		w->skip += n;
		w->want += NAME_BYTES + n * IOVEC_BYTES + m + 4 * sizeof(struct piece);
	}
	return w->skip <= MAX_IOVECS && w->want <= COMPOSE_MAX;
}

struct messages {
	struct work *w;
	u64 addr;
	u32 arg, moved; /* moved: their numbers of bytes stand behind them */
};
static long put_next_message(u32 i, struct messages *c)
{
	u64 h = c->addr + MMSGHDR_BYTES * i;

	put_message(c->w, c->arg, h, c->moved ? count_at(h + sizeof(struct user_msghdr), 4) : 0, NAME_BYTES);
	return 0;
}

__noinline int put_messages(struct work *w, struct task *st, struct cap *c, s64 ret)
{
	if (!w || !st || !c)
		return 0;
	u64 addr = arg_of(st, c->arg), n = 1;
	u8 arg = c->arg;
	bool many = c->len == IOT_LEN_MSGS;

	if (failed(ret) && c->dir == IOT_DIR_OUT)
		return 0;
	w->names = w->controls = w->shapes = w->data = w->niov = 0;
	if (!many) {
		put_bytes(w, arg, addr, sizeof(struct user_msghdr), ret);
		u64 room = c->dir == IOT_DIR_OUT && st->offered < NAME_BYTES ? st->offered : NAME_BYTES;
		put_message(w, arg, addr, failed(ret) ? 0 : ret, room);
	} else {
		/* of a call that failed, the message that it failed at */
		n = !failed(ret) ? ret : arg_of(st, c->len_arg) ? 1 : 0;
		if (!n)
			return 0;
		if (!fits(w, addr, n)) {
			if (failed(ret) || !add_part(w, arg, PART_MESSAGES, addr, n * MMSGHDR_BYTES, 0, n))
				put_piece(w, arg, PIECE_MISSING, n * MMSGHDR_BYTES, 0);
			return 0;
		}
		put_bytes(w, arg, addr, n * MMSGHDR_BYTES, ret);
		struct messages m = {.w = w, .addr = addr, .arg = arg, .moved = !failed(ret)};
		each(n, put_next_message, &m);
	}
	if (!w->data)
		return 0;
	many = c->len == IOT_LEN_MSGS;
	arg = c->arg | IOT_PART_DATA;
	plan_content(w, c, arg, 0, many ? PART_MSGDATA : PART_VECTOR, many ? addr : w->done, w->data, w->niov);
	return 0;
}

/* put_descriptors looks up the descriptors that stand in memory, step bytes apart. */
__noinline int put_descriptors(struct work *w, u64 addr, u64 count, u64 step)
{
	u32 i;
	s32 fd;

	if (!w)
		return 0;
	repeat(i, count, IOT_MAX_PASSED + 2) {
		if (w->nobjects > IOT_MAX_PASSED)
			break;
		if (bpf_probe_read_user(&fd, sizeof(fd), (void *)(addr + step * i)))
			break;
		put_object(w, fd, IOT_MEMORY_ARG);
	}
	return 0;
}

/* put_passed looks up those that a message passes (SCM_RIGHTS, SCM_PIDFD). */
#define MAX_CONTROLS 256
__noinline int put_passed(struct work *w, u64 addr)
{
	struct {
		u64 len;
		s32 level, type;
	} c;
	struct user_msghdr h;
	u32 i;

	if (!w || bpf_probe_read_user(&h, sizeof(h), (void *)addr) || !h.control)
		return 0;
	w->skip = 0;
	repeat(i, 1024, MAX_CONTROLS) {
		(void)i;
		u64 at = w->skip;
		if (at > CONTROL_BYTES || at + sizeof(c) > h.controllen)
			break;
		if (bpf_probe_read_user(&c, sizeof(c), (void *)(h.control + at)))
			break;
		if (c.len < sizeof(c) || c.len > h.controllen - at)
			break;
		if (c.level == 1 /* SOL_SOCKET */ && (c.type == 1 || c.type == 4))
			put_descriptors(w, h.control + at + sizeof(c), (c.len - sizeof(c)) / 4, 4);
		w->skip = at + pad8(c.len);
	}
	return 0;
}

/* put_inner looks up the descriptors in the memory of an argument, of a call that
 * succeeded, and those that a command takes or makes. */
__noinline int put_inner(struct work *w, struct task *st, struct cap *c, s64 ret)
{
	u64 addr, n = 1;
	u32 i;

	if (!w || !st || !c)
		return 0;
	addr = arg_of(st, c->arg);
	if (c->len == IOT_LEN_MSGS || c->len == IOT_LEN_MSG) {
		if (c->len == IOT_LEN_MSGS)
			n = ret < IOT_MAX_MESSAGES ? ret : IOT_MAX_MESSAGES;
		repeat(i, n, IOT_MAX_MESSAGES)
			put_passed(w, addr + MMSGHDR_BYTES * i);
		return 0;
	}
	u32 arg = c->arg;
	if (c->len == IOT_LEN_COMMAND) {
		c = command_of(w, arg_of(st, c->len_arg));
		if (!c)
			return 0;
		if (c->kind == IOT_KIND_FD)
			return put_object(w, addr, arg);
		if (c->flags & CAP_MADE)
			return put_object(w, ret, IOT_RESULT_ARG);
	}
	if (c->flags & CAP_FDS)
		put_descriptors(w, addr, 2, 4);
	if (c->flags & CAP_FD_HEAD)
		put_descriptors(w, addr, 1, 8);
	if (c->flags & CAP_FD_TAIL)
		put_descriptors(w, addr + c->bytes, tail_count(c, addr), c->tail_elem);
	return 0;
}
