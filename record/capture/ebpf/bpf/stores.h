// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Stores to files through shared mappings leave no trace of their own. A file that
 * such a mapping of a followed thread can reach is in "stores"; the recorder, for
 * which the thread is held, opens it. From then on it is told (ring "touches")
 * which folios become dirty, and at the calls that make their content matter it
 * looks at it, while the thread is held (record/capture/ebpf/stores.go). */
#pragma once

#include "mapped.h"

/* Processes that have, or may have, such mappings. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u32);
} storers SEC(".maps");

/* What the recorder is told (stores.go). */
enum { TOUCH_DIRTY = 1, TOUCH_WRITEBACK, TOUCH_EXIT, TOUCH_CHANGED, TOUCH_COLLAPSED, TOUCH_INSERTED };
struct touch {
	u64 time;
	struct file_key key;
	u64 off, len; /* bytes of the file; off is the time of an exit */
	u32 kind, pid, tid, zero;
};
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} touches SEC(".maps");
const struct touch *touch_type __attribute__((unused));

static __always_inline void tell(struct touch *t, bool now)
{
	t->time = bpf_ktime_get_ns();
	if (bpf_ringbuf_output(&touches, t, sizeof(*t), now ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&shared.untold, 1);
}


/* What calls have to do with mapped files (record/internal/bpf/table.go). */
enum {
	USE_NONE,
	USE_MMAP,
	USE_MPROTECT,
	USE_MUNMAP, /* and mremap: ends a mapping of argument 0, of argument 1 bytes */
	USE_MSYNC,
	USE_READ,  /* of the descriptor, at its position */
	USE_PREAD, /* of the descriptor, at argument 3 */
	USE_COPY,  /* of the descriptors, anywhere: from argument 0 to 2 */
	USE_SEND,  /* from argument 1 to 0 */
	USE_SYNC,  /* of the descriptor */
	USE_SYNC_ALL,
	USE_EXEC,
	/* From here on: what changes a file otherwise than by stores. */
	USE_WRITE,    /* to the descriptor, at its position */
	USE_PWRITE,   /* to the descriptor, at argument 3 */
	USE_TRUNCATE,
	USE_FTRUNCATE,
	USE_OPEN, /* an open can empty its file */
	USE_OPENAT,
	USE_OPENAT2,
	USE_CREAT,
	USE_ALLOCATE,
	USE_CLONE, /* an ioctl, if it does */
};
#define O_TRUNC 01000
#define AT_POSITION (~0ull)
#define TO_END (1ull << 62)
#define FALLOC_PUNCH_HOLE 2
#define FALLOC_COLLAPSE_RANGE 8
#define FALLOC_ZERO_RANGE 0x10
#define FALLOC_INSERT_RANGE 0x20
#define FICLONE 0x40049409
#define FICLONERANGE 0x4020940d
#define FIDEDUPERANGE 0xc0189436
#define MAP_TYPE 0xf
#define MAP_SHARED 1
#define MAP_SHARED_VALIDATE 3
#define MAP_FIXED 0x10
#define MAP_ANONYMOUS 0x20
#define MAP_DENYWRITE 0x800 /* of ld.so, for libraries; without meaning for the kernel */
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MS_SYNC 4
#define STORED_CLEAN 1 /* part.flags: what is dirty from now on was stored later */

static __always_inline bool can_store(struct area *a)
{
	return a->key.ino && (a->flags & (VM_SHARED | VM_MAYWRITE)) == (VM_SHARED | VM_MAYWRITE);
}

/* note_use remembers which stored-to file lies in the range of memory that a call is
 * about to change: afterwards it may not be there any more. */
__noinline int note_use(struct task *st, struct spec *s)
{
	if (!st || !s)
		return 0;
	struct fault *f = bpf_task_storage_get(&faults, bpf_get_current_task_btf(), 0, 0);
	u64 at = st->args[0], end = at + st->args[1];
	struct work *w = this_work();
	long err;
	u32 i __attribute__((unused));

	if (!f || !w)
		return 0;
	f->use_files = 0;
	if (!shared.mapped)
		return 0;
	if (s->use != USE_MUNMAP && s->use != USE_MSYNC && !(s->use == USE_MMAP && st->args[3] & MAP_FIXED))
		return 0;
	repeat(i, 8, 8) {
		if (at >= end)
			break;
		struct area *a = area_at(w, at, &err);
		if (err) { /* a hole, or a lock that is taken */
			f->use_files = 2;
			break;
		}
		if (can_store(a) && bpf_map_lookup_elem(&stores, &a->key)) {
			u64 to = a->to < end ? a->to : end;
			f->use_files++;
			f->use_ino = a->key.ino;
			f->use_dev = a->key.dev;
			f->use_off = (a->first << page_shift) + (at - a->from);
			f->use_len = to - at;
		}
		at = a->to;
	}
	if (f->use_files)
		__sync_fetch_and_add(&shared.unmapping, 1);
	return 0;
}

/* put_stored has the recorder look at a file before the call's return is recorded:
 * at all of them, if the inode is 0. */
static __always_inline void put_stored(struct work *w, struct file_key *k, u64 off, u64 len, u32 flags)
{
	u32 n = w->pend.nparts;

	if (add_part(w, NO_CONTENT, PART_STORED, k->ino, len, off, k->dev) && n < MAX_PARTS)
		w->pend.parts[MASKED(n, 7)].flags = flags;
}

static __always_inline void put_stored_all(struct work *w, u32 flags)
{
	struct file_key none = {};
	put_stored(w, &none, 0, ~0ull, flags);
}

/* file_key says which file an open one is of. */
static __always_inline void file_key(struct file *f, struct file_key *k)
{
	struct inode *i = MEMBER(f, f_inode);
	struct super_block *sb = MEMBER(i, i_sb);

	k->ino = MEMBER(i, i_ino);
	k->dev = MEMBER(sb, s_dev);
	k->zero = 0;
}

/* is_stored finds the file of a descriptor among those that are stored to. */
__noinline int is_stored(s32 fd)
{
	struct file *f = file_of(fd);
	struct file_key k;

	if (!f)
		return 0;
	file_key(f, &k);
	return bpf_map_lookup_elem(&stores, &k) != 0;
}

/* put_stored_at does put_stored for the file of a descriptor, if it is one of them. */
__noinline int put_stored_at(struct work *w, s32 fd, u64 off, u64 len, u32 flags)
{
	struct file *f = file_of(fd);
	struct file_key k;

	if (!w || !f)
		return 0;
	file_key(f, &k);
	if (bpf_map_lookup_elem(&stores, &k))
		put_stored(w, &k, off, len, flags);
	return 0;
}

/* now_mapped looks at a mapping that can be stored to from now on. */
__noinline int now_mapped(struct work *w, u64 addr)
{
	if (!w)
		return 0;
	u32 pid = own_id() >> 32, one = 1;
	long err;
	struct area *a = area_at(w, addr, &err);

	if (err || !can_store(a))
		return 0;
	bpf_map_update_elem(&storers, &pid, &one, BPF_ANY);
	struct stored s = {.mapping = a->mapping, .key = a->key, .pages = a->pages};
	if (bpf_map_lookup_elem(&stores, &s.key) || !blocking())
		return 0;
	bpf_map_update_elem(&stores, &s.key, &s, BPF_ANY);
	if (s.pages.ino != s.key.ino || s.pages.dev != s.key.dev)
		bpf_map_update_elem(&stores, &s.pages, &s, BPF_ANY);
	__sync_fetch_and_add(&shared.mapped, 1);
	add_part(w, NO_CONTENT, PART_MAPPING, addr, a->key.ino, a->mapping, a->key.dev);
	return 0;
}

/* lose_late counts the pages that a thread left to its next call, if that ends it. */
static __always_inline void lose_late(struct task *st)
{
	struct fault *f;
	u32 i;

	if (!(st->flags & TASK_LATE))
		return;
	st->flags &= ~TASK_LATE;
	f = bpf_task_storage_get(&faults, bpf_get_current_task_btf(), 0, 0);
	for (i = 0; f && i < MAX_LATE; i++) {
		if (i >= f->lates)
			break;
		__sync_fetch_and_add(&shared.pages, 1);
	}
	if (f)
		f->lates = 0;
}

/* use_late adds the pages that faults left to the call that returns. gone says that the address space that
 * they were in is. */
__noinline int use_late(struct work *w, struct task *st, bool gone)
{
	u32 i;

	if (!w || !st)
		return 0;
	st->flags &= ~TASK_LATE;
	struct fault *f = bpf_task_storage_get(&faults, bpf_get_current_task_btf(), 0, 0);
	for (i = 0; f && i < MAX_LATE; i++) {
		u64 n = f->lates;
		if (!n || n > MAX_LATE)
			break;
		if (gone) {
			__sync_fetch_and_add(&shared.pages, 1);
		} else if (w->pend.nparts + w->nbulk + 2 > MAX_PARTS || !add_pages(w, &f->late[MASKED(n - 1, MAX_LATE - 1)], NO_CONTENT)) {
			st->flags |= TASK_LATE; /* with the next call */
			break;
		}
		f->lates = n - 1;
	}
	return 0;
}

/* tell_changed tells of bytes of a descriptor's file that a call changed: what the recorder knows
 * of them says nothing any more. */
__noinline int tell_changed(s32 fd, u64 off, u64 len, u32 kind)
{
	struct file *f = file_of(fd);
	struct file_key k;

	if (!f)
		return 0;
	file_key(f, &k);
	struct stored *s = bpf_map_lookup_elem(&stores, &k);
	if (!s)
		return 0;
	if (off == AT_POSITION) {
		off = MEMBER(f, f_pos) - len;
	} else if (kind == TOUCH_CHANGED && MEMBER(f, f_flags) & O_APPEND) { /* which writes there whatever it is told */
		struct inode *i = MEMBER(f, f_inode);
		u64 end = MEMBER(i, i_size) - len;
		off = off < end ? off : end;
		len = TO_END - off;
	}
	struct touch m = {.kind = kind, .key = s->key, .off = off, .len = len};
	tell(&m, false);
	return 0;
}

static __always_inline u64 user_word(u64 addr)
{
	u64 v = 0;

	bpf_probe_read_user(&v, sizeof(v), (void *)addr);
	return v;
}

/* changed_by tells what a call changed that succeeded. */
__noinline int changed_by(struct task *st, struct spec *s, s64 ret)
{
	if (!st || !s)
		return 0;
	u64 *a = (u64 *)st->args, off, flags;

	switch (s->use) {
	case USE_WRITE:
		tell_changed(a[0], AT_POSITION, ret, TOUCH_CHANGED);
		break;
	case USE_PWRITE:
		tell_changed(a[0], a[3], ret, TOUCH_CHANGED);
		break;
	case USE_SEND:
		tell_changed(a[0], AT_POSITION, ret, TOUCH_CHANGED);
		break;
	case USE_COPY:
		off = a[3] ? user_word(a[3]) - ret : AT_POSITION; /* it was moved by what was written */
		tell_changed(a[2], off, ret, TOUCH_CHANGED);
		break;
	case USE_FTRUNCATE:
		tell_changed(a[0], a[1], TO_END, TOUCH_CHANGED);
		break;
	case USE_TRUNCATE: { /* of all files: which one the name leads to is not known */
		struct touch m = {.kind = TOUCH_CHANGED, .off = a[1], .len = TO_END};
		tell(&m, false);
		break;
	}
	case USE_OPEN:
	case USE_OPENAT:
	case USE_OPENAT2:
	case USE_CREAT:
		flags = s->use == USE_OPEN ? a[1] : s->use == USE_OPENAT ? a[2] : s->use == USE_CREAT ? O_TRUNC : user_word(a[2]);
		if (flags & O_TRUNC)
			tell_changed(ret, 0, TO_END, TOUCH_CHANGED);
		break;
	case USE_ALLOCATE:
		if (a[1] & FALLOC_COLLAPSE_RANGE)
			tell_changed(a[0], a[2], a[3], TOUCH_COLLAPSED);
		else if (a[1] & FALLOC_INSERT_RANGE)
			tell_changed(a[0], a[2], a[3], TOUCH_INSERTED);
		else if (a[1] & (FALLOC_PUNCH_HOLE | FALLOC_ZERO_RANGE))
			tell_changed(a[0], a[2], a[3], TOUCH_CHANGED);
		break;
	case USE_CLONE:
		if ((u32)a[1] == FICLONE || (u32)a[1] == FICLONERANGE)
			tell_changed(a[0], 0, TO_END, TOUCH_CHANGED);
		break;
	}
	return 0;
}

/* use_mapped adds what the recorder has to do for a call that returns. */
__noinline int use_mapped(struct work *w, struct task *st, struct spec *s, s64 ret)
{
	if (!w || !st || !s)
		return 0;
	u32 pid = own_id() >> 32, one = 1;
	struct fault *f;
	struct file_key k = {};

	if (st->flags & TASK_LATE)
		use_late(w, st, s->use == USE_EXEC && !failed(ret));
	if (s->use == USE_MMAP && !failed(ret) && !(st->args[3] & MAP_ANONYMOUS)) {
		__sync_fetch_and_add(&shared.mappings, 1);
		struct file *file = file_of(st->args[4]);
		if (file && (st->args[2] & PROT_EXEC || st->args[3] & MAP_DENYWRITE)) {
			file_key(file, &k);
			if (!bpf_map_lookup_elem(&code, &k))
				bpf_map_update_elem(&code, &k, &one, BPF_ANY);
		}
		u32 type = st->args[3] & MAP_TYPE;
		if ((type == MAP_SHARED || type == MAP_SHARED_VALIDATE) && st->args[2] & PROT_WRITE)
			now_mapped(w, ret);
	}
	if (s->use == USE_MPROTECT && !failed(ret) && st->args[2] & PROT_WRITE)
		now_mapped(w, st->args[0]);
	if (!shared.mapped && s->use != USE_MMAP && s->use != USE_MUNMAP && s->use != USE_MSYNC)
		return 0;
	if ((s->use >= USE_WRITE || s->use == USE_COPY || s->use == USE_SEND) && !failed(ret))
		changed_by(st, s, ret);
	switch (s->use) {
	case USE_MMAP:
	case USE_MUNMAP:
	case USE_MSYNC:
		f = bpf_task_storage_get(&faults, bpf_get_current_task_btf(), 0, 0);
		if (!f || !f->use_files)
			break;
		if (failed(ret) || !blocking()) {
			__sync_fetch_and_add(&shared.unmapping, -1);
			break;
		}
		k.ino = f->use_ino;
		k.dev = f->use_dev;
		u32 clean = s->use == USE_MSYNC && st->args[2] & MS_SYNC ? STORED_CLEAN : 0;
		if (f->use_files > 1)
			put_stored_all(w, 0);
		else
			put_stored(w, &k, f->use_off, f->use_len, clean);
		break;
	case USE_READ:
		if (ret > 0)
			put_stored_at(w, st->args[0], st->start, ret, 0);
		break;
	case USE_PREAD:
		if (ret > 0)
			put_stored_at(w, st->args[0], st->args[3], ret, 0);
		break;
	case USE_COPY:
	case USE_SEND:
		if (ret > 0 && (is_stored(st->args[0]) || is_stored(st->args[1])))
			put_stored_all(w, 0);
		break;
	case USE_CLONE:
		if (ret == 0 && ((u32)st->args[1] == FICLONE || (u32)st->args[1] == FICLONERANGE || (u32)st->args[1] == FIDEDUPERANGE))
			put_stored_all(w, 0);
		break;
	case USE_SYNC:
		if (ret == 0)
			put_stored_at(w, st->args[0], 0, ~0ull, STORED_CLEAN);
		break;
	case USE_SYNC_ALL:
		put_stored_all(w, 0);
		break;
	case USE_EXEC:
		if (failed(ret) || !bpf_map_lookup_elem(&storers, &pid))
			break;
		bpf_map_delete_elem(&storers, &pid);
		put_stored_all(w, 0);
		break;
	}
	return 0;
}

/* mapped_fork: a child has its parent's mappings. */
static __always_inline void mapped_fork(struct task_struct *parent, struct task_struct *child)
{
	u32 pid = tgid_of(parent), kid = tgid_of(child), one = 1;

	if (mmap_mode == MMAP_OFF)
		return;
	bpf_task_storage_get(&faults, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (shared.mapped && pid != kid && bpf_map_lookup_elem(&storers, &pid))
		bpf_map_update_elem(&storers, &kid, &one, BPF_ANY);
}

/* mapped_exec forgets a fault of the memory that is gone. */
static __always_inline void mapped_exec(struct task *st)
{
	struct fault *f = bpf_task_storage_get(&faults, bpf_get_current_task_btf(), 0, 0);

	if (!f)
		return;
	f->addr = 0;
	f->anon_bytes[0] = f->anon_bytes[1] = 0;
	st->flags &= ~TASK_FAULT;
}

/* mapped_exit tells of the end of a process that had something to store to. */
static __noinline int mapped_exit(struct task_struct *t, u64 now)
{
	u32 pid = tgid_of(t);

	if (!shared.mapped || t->signal->live.counter > 0 || !bpf_map_lookup_elem(&storers, &pid))
		return 0;
	bpf_map_delete_elem(&storers, &pid);
	struct touch m = {.kind = TOUCH_EXIT, .pid = pid, .tid = tid_of(t), .off = now};
	tell(&m, true);
	return 0;
}

/* folio_dirtied tells of the first store to a folio since it was last written back. */
static __always_inline int folio_dirtied(struct folio *folio, struct address_space *mapping)
{
	struct file_key k = {};

	if (!shared.mapped || released() || !mapping || mapping->i_mmap_writable.counter <= 0)
		return 0;
	k.ino = mapping->host->i_ino;
	k.dev = mapping->host->i_sb->s_dev;
	struct stored *s = bpf_map_lookup_elem(&stores, &k);
	if (!s)
		return 0;
	u64 pages = 1, flags = word_at(folio);
	if (flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1)
		pages = 1ull << (bpf_core_field_exists(struct folio___old, _folio_order) ? ((struct folio___old *)folio)->_folio_order :
											   folio->_flags_1 & 0xff);
	struct touch m = {.kind = TOUCH_DIRTY, .key = s->key, .off = folio->index << page_shift, .len = pages << page_shift};
	tell(&m, false);
	return 0;
}

/* inode_written_back: the kernel begins to write back a file. */
static __always_inline int inode_written_back(struct inode *inode)
{
	struct file_key k = {};

	if (!shared.mapped || released())
		return 0;
	k.ino = inode->i_ino;
	k.dev = inode->i_sb->s_dev;
	struct stored *s = bpf_map_lookup_elem(&stores, &k);
	if (!s)
		return 0;
	struct touch m = {.kind = TOUCH_WRITEBACK, .key = s->key, .len = ~0ull};
	tell(&m, true);
	return 0;
}

/* writable_mappings returns how many mappings can store to a file, for the recorder. */
struct mapping_count {
	u64 mapping;
};
static __always_inline int writable_mappings(struct mapping_count *c)
{
	return MEMBER((struct address_space *)c->mapping, i_mmap_writable.counter);
}
