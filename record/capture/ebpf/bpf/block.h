// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests to block devices, of the whole machine: what a file system and the page cache make of
 * calls. A request is followed from when its driver gets it until the device has done it. The
 * recorder makes an event of it (record/capture/ebpf/block.go). */
#pragma once

#include "task.h"

struct block_io {
	u64 start, end; /* ns */
	u64 queued;     /* ns from when it was made to start; 0: not known */
	u64 sector;     /* of 512 bytes, on the whole disk */
	u64 ino, off;   /* the file whose page is the first, and its bytes; 0: a direct transfer, or none */
	u32 dev, file_dev, mode;
	u32 bytes, flags; /* of struct request */
	u32 status;       /* blk_status_t */
	u32 pid, tid, uid;
	u32 followed; /* the thread is recorded */
	char comm[16];
};
const struct block_io *block_io_type __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct block_io);
} block_started SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} block_ios SEC(".maps");

#define REQ_OP_MASK 0xff
#define REQ_OP_DRV_IN 34 /* commands to the driver begin here */

/* file_of_page finds the file that a page of the page cache is of. */
static __always_inline void file_of_page(struct block_io *b, u64 page, u32 at)
{
	u64 head = BPF_CORE_READ((struct page *)page, compound_head);
	struct folio *folio = (struct folio *)(head & 1 ? head - 1 : page);
	u64 mapping = (u64)BPF_CORE_READ(folio, mapping);

	if (!mapping || mapping & 3) /* memory of a process: a direct transfer, or swap */
		return;
	struct inode *host = BPF_CORE_READ((struct address_space *)mapping, host);
	if (!host)
		return;
	b->ino = BPF_CORE_READ(host, i_ino);
	b->mode = BPF_CORE_READ(host, i_mode);
	b->file_dev = BPF_CORE_READ(host, i_sb, s_dev);
	u64 pages = (page - (u64)folio) / bpf_core_type_size(struct page);
	b->off = ((BPF_CORE_READ(folio, index) + pages) << page_shift) + at;
}

static __always_inline int block_issued(struct request___blk *rq)
{
	u64 key = (u64)rq;
	struct block_io b = {};

	b.flags = BPF_CORE_READ(rq, cmd_flags);
	if (released() || (b.flags & REQ_OP_MASK) >= REQ_OP_DRV_IN)
		return 0;
	b.start = bpf_ktime_get_ns();
	u64 made = BPF_CORE_READ(rq, start_time_ns); /* 0 where the device keeps no statistics */
	if (made && made < b.start)
		b.queued = b.start - made;
	b.bytes = BPF_CORE_READ(rq, __data_len);
	b.sector = BPF_CORE_READ(rq, __sector);
	struct bio *bio = BPF_CORE_READ(rq, bio);
	if (bio) {
		struct bio_vec *v = BPF_CORE_READ(bio, bi_io_vec) + BPF_CORE_READ(bio, bi_iter.bi_idx);
		b.dev = BPF_CORE_READ(bio, bi_bdev, bd_dev);
		u32 op = b.flags & REQ_OP_MASK;
		if (op <= 1 && v)
			file_of_page(&b, (u64)BPF_CORE_READ(v, bv_page), BPF_CORE_READ(v, bv_offset));
	} else {
		b.dev = BPF_CORE_READ(rq, q, disk, part0, bd_dev);
	}
	struct task_struct *t = bpf_get_current_task_btf();
	b.pid = tgid_of(t);
	b.tid = tid_of(t);
	b.uid = t->cred->euid.val;
	b.followed = bpf_task_storage_get(&tasks, t, 0, 0) != 0;
	__builtin_memcpy(b.comm, t->comm, sizeof(b.comm));
	if (bpf_map_update_elem(&block_started, &key, &b, BPF_ANY))
		__sync_fetch_and_add(&shared.blocks, 1);
	return 0;
}

static __always_inline int block_done(struct request___blk *rq, u32 status, u32 bytes)
{
	u64 key = (u64)rq;
	struct block_io *b = bpf_map_lookup_elem(&block_started, &key);

	if (!b || released() || (!status && bytes < BPF_CORE_READ(rq, __data_len))) /* done in parts: the last one counts */
		return 0;
	b->end = bpf_ktime_get_ns();
	b->status = status;
	if (bpf_ringbuf_output(&block_ios, b, sizeof(*b), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&shared.blocks, 1);
	bpf_map_delete_elem(&block_started, &key);
	return 0;
}
