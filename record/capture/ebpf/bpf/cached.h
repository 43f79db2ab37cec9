// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whether a read found its pages in the page cache: a page that a thread brings there during its
 * call, and that lies in what the call then returns, was missed. Pages behind that are read ahead. */
#pragma once

#include "mapped.h"

const volatile bool tells_misses = false;

/* reads_at returns where a call began to read, if it reads a file at its position or at another; else -1. */
static __always_inline s64 reads_at(struct task *st, struct spec *s)
{
	switch (s->op) {
	case IOT_OP_READ:
	case IOT_OP_READV:
		return st->file ? st->start : -1;
	case IOT_OP_PREAD64:
	case IOT_OP_PREADV:
		return st->args[3];
	case IOT_OP_PREADV2:
		return st->args[3] != ~0ull ? (s64)st->args[3] : st->file ? st->start : -1;
	}
	return -1;
}

/* page_added notes the first page of a file that the call under way brings into the page cache. */
static __always_inline int page_added(struct folio *folio)
{
	struct task *st = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);

	if (!st || !(st->flags & TASK_IN_CALL) || released())
		return 0;
	struct inode *host = BPF_CORE_READ(folio, mapping, host);
	if (!host || (BPF_CORE_READ(host, i_mode) & S_IFMT) != S_IFREG) /* data of the file system */
		return 0;
	struct spec *s = spec_of(st);
	if (!s || reads_at(st, s) < 0)
		return 0;
	u64 page = BPF_CORE_READ(folio, index);
	if (!(st->flags & TASK_ADDED) || page < st->offered)
		st->offered = page;
	st->flags |= TASK_ADDED;
	return 0;
}

/* missed says whether a call that has returned had to bring a page that it read. */
static __always_inline bool missed(struct task *st, struct spec *s, s64 ret)
{
	if (!tells_misses || !(st->flags & TASK_ADDED) || ret <= 0)
		return false;
	s64 at = reads_at(st, s);
	return at >= 0 && st->offered << page_shift < (u64)at + ret;
}
