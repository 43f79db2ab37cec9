// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files that are mapped into memory: which of their pages programs fault in, and
 * which they can have stored to.
 *
 * Reads. A fault of a followed thread is noted (on_page_fault_…), because the hooks
 * of the page cache do not tell the address. If it maps pages that are cached,
 * on_map_pages says so when they are there, and they are recorded on the spot.
 * Otherwise the page has to come first, and is recorded at the thread's next hook
 * (settle): on_filemap_fault says which, or nothing does, for tmpfs and huge pages.
 * Most faults are of anonymous memory; areas known to be that are passed over.
 *
 * Stores: see stores.h. */
#pragma once

#include "emit.h"
#include "fault.h"
#include "task.h"

const volatile u64 started = 0;     /* s: a file that was last changed before is as it was */
const volatile u32 page_shift = 12;
const volatile u32 read_keep = 0;   /* bytes of content that are wanted of one record */

#define PAGE (1ull << page_shift)
#define MAPPED_ARG 1 /* whose content the pages are */
#define VM_EXEC 4
#define VM_SHARED 8
#define VM_MAYWRITE 0x20
#define VM_WRITE 2
#define S_IFREG 0100000
#define FMODE_BACKING (1u << 25)
#define TMPFS_MAGIC 0x01021994
#define HUGE_PAGES 512 /* pages under one entry of a page middle directory */
#define EBUSY 16

struct file_key {
	u64 ino;
	u32 dev, zero;
};
/* Files that programs can store to, by the inode that a descriptor shows and by the
 * one that has the pages (they differ on overlayfs). */
struct stored {
	u64 mapping; /* struct address_space, which the recorder's open file keeps */
	struct file_key key, pages;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct file_key);
	__type(value, struct stored);
} stores SEC(".maps");

/* Programs and libraries. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, u32);
} code SEC(".maps");

/* Pages whose content is in the stream already, 64 to a word. */
struct pages_key {
	u64 ino, word;
	u32 dev, zero;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct pages_key);
	__type(value, u64);
} known SEC(".maps");

/* area is what a thread has mapped at an address, and the file of it. */
struct area {
	u64 from, to, first, flags; /* first: the file page at from */
	u64 mapping;
	struct file_key key, pages; /* as descriptors show it; that has the pages */
	u64 size;
	u32 mode, nlink, uid, gid, file_flags;
	bool constant, tmpfs, copied; /* copied: the area may have pages of its own */
	/* Of the fault. */
	bool hold; /* the thread is on its way back to the program */
	bool last; /* it is not, and will not be */
	u64 now, at, count; /* of the record: first page, pages */
};

_Static_assert(sizeof(struct area) <= 8 * AREA_WORDS, "area");

/* changed_at is the second of a file's last change. */
static __always_inline s64 changed_at(struct inode *i)
{
	struct inode___6_6 *since6_6 = (void *)i;
	struct inode___old *old = (void *)i;

	if (bpf_core_field_exists(struct inode, i_ctime_sec))
		return i->i_ctime_sec;
	if (bpf_core_field_exists(struct inode___6_6, __i_ctime))
		return since6_6->__i_ctime.tv_sec;
	return old->i_ctime.tv_sec;
}

static long see_area(struct task_struct *t, struct vm_area_struct *vma, struct area **p)
{
	struct area *a = *p;
	if (casts) /* as self() */
		vma = bpf_rdonly_cast(vma, bpf_core_type_id_kernel(struct vm_area_struct));
	struct file *f = vma->vm_file;

	a->from = vma->vm_start;
	a->to = vma->vm_end;
	a->first = vma->vm_pgoff;
	a->flags = vma->vm_flags;
	if (!f)
		return 0;
	struct inode *i = f->f_inode;
	if ((i->i_mode & S_IFMT) != S_IFREG)
		return 0;
	struct address_space *m = i->i_mapping;
	a->mapping = (u64)m;
	a->pages.ino = i->i_ino;
	a->pages.dev = i->i_sb->s_dev;
	a->tmpfs = i->i_sb->s_magic == TMPFS_MAGIC;
	a->size = i->i_size;
	a->constant = (u64)changed_at(i) < started && i->i_writecount.counter <= 0 && m->i_mmap_writable.counter <= 0;
	a->copied = vma->anon_vma && !(a->flags & VM_SHARED);
	a->file_flags = f->f_flags & ~(O_CLOEXEC | O_CREAT);
	if (!bpf_core_field_exists(struct backing_file, user_path)) {
		i = f->f_path.dentry->d_inode; /* the descriptor's, whatever the file system has below it */
	} else if (f->f_mode & FMODE_BACKING) {
		struct backing_file *b = bpf_rdonly_cast(f, bpf_core_type_id_kernel(struct backing_file));
		i = b->user_path.dentry->d_inode;
	}
	a->key.ino = i->i_ino;
	a->key.dev = i->i_sb->s_dev;
	a->mode = i->i_mode;
	a->nlink = i->__i_nlink;
	a->uid = i->i_uid.val;
	a->gid = i->i_gid.val;
	return 0;
}

/* area_at finds what the calling thread has mapped at an address. It is kept in the work
 * space, since it is large, until the next is looked for. */
static __always_inline struct area *area_at(struct work *w, u64 addr, long *err)
{
	struct area *a = (struct area *)w->area;

	__builtin_memset(a, 0, sizeof(*a));
	*err = bpf_find_vma(bpf_get_current_task_btf(), addr, see_area, &a, 0);
	return (struct area *)w->area;
}

/* is_code says whether a file is mapped to be executed, by this process or another. */
static __always_inline bool is_code(struct area *a)
{
	struct task_struct *t = self();
	struct file_key k = a->pages;
	u32 one = 1;

	if (bpf_map_lookup_elem(&code, &k))
		return true;
	struct file *exe = t->mm->exe_file;
	if (!(a->flags & VM_EXEC) && !(exe && exe->f_inode->i_ino == a->pages.ino && exe->f_inode->i_sb->s_dev == a->pages.dev))
		return false;
	bpf_map_update_elem(&code, &k, &one, BPF_ANY);
	return true;
}

/* word_mask is the bits of a word of pages that lie in a record. */
static __always_inline u64 word_mask(struct area *a, u64 word)
{
	u64 lo = a->at, hi = a->at + a->count - 1, m = ~0ull;

	if (lo >> 6 == word)
		m &= ~0ull << (lo & 63);
	if (hi >> 6 == word)
		m &= ~0ull >> (63 - (hi & 63));
	return m;
}

__noinline int all_known(struct area *a)
{
	if (!a)
		return 0;
	struct pages_key k = {.ino = a->pages.ino, .dev = a->pages.dev};
	u64 last = (a->at + a->count - 1) >> 6;
	u32 i __attribute__((unused));

	k.word = a->at >> 6;
	repeat(i, HUGE_PAGES / 64 + 1, HUGE_PAGES / 64 + 1) {
		u64 *bits = bpf_map_lookup_elem(&known, &k);
		u64 m = word_mask(a, k.word);
		if (!bits || (*bits & m) != m)
			return 0;
		if (++k.word > last)
			return 1;
	}
	return 0;
}

__noinline int now_known(struct area *a)
{
	if (!a)
		return 0;
	struct pages_key k = {.ino = a->pages.ino, .dev = a->pages.dev};
	u64 last = (a->at + a->count - 1) >> 6;
	u32 i __attribute__((unused));

	k.word = a->at >> 6;
	repeat(i, HUGE_PAGES / 64 + 1, HUGE_PAGES / 64 + 1) {
		u64 *bits = bpf_map_lookup_elem(&known, &k);
		u64 m = word_mask(a, k.word);
		if (bits)
			__sync_fetch_and_or(bits, m);
		else
			bpf_map_update_elem(&known, &k, &m, BPF_ANY);
		if (++k.word > last)
			break;
	}
	return 0;
}

/* put_file appends the file of an area as the object of argument 0. */
static __always_inline void put_file(struct work *w, struct area *a)
{
	struct object *o = (struct object *)(w->buf + sizeof(struct rec_call));

	o->ino = a->key.ino;
	o->dev = a->key.dev;
	o->size = a->size;
	o->pos = 0;
	o->rdev = 0;
	o->mode = a->mode;
	o->flags = a->file_flags;
	o->nlink = a->nlink;
	o->uid = a->uid;
	o->gid = a->gid;
	o->fd = -1;
	*(u64 *)&o->arg = 0;
	w->len = sizeof(struct rec_call) + sizeof(*o);
	w->nobjects = 1;
}

/* page_bytes is how many bytes of the file the record's pages have. */
static __always_inline u64 page_bytes(struct area *a)
{
	u64 off = a->at << page_shift, n = a->count << page_shift;
	return off + n > a->size ? a->size - off : n;
}

enum { READ_SHARED = 1, READ_STORE = 2, READ_CODE = 4, READ_IN_CALL = 8 }; /* event.MappedShared … */

__noinline int compose_read(struct work *w, struct fault *f, struct area *a, u32 is_code)
{
	if (!w || !f || !a)
		return 0;
	struct task_struct *t = bpf_get_current_task_btf();
	struct rec_call *r = (struct rec_call *)w->buf;

	set_prefix(&r->p, REC_CALL, t);
	r->p.op = IOT_OP_MMAP_PREAD;
	r->enter = f->time;
	r->exit = a->now;
	r->cpu = t->se.sum_exec_runtime;
	r->ret = page_bytes(a);
	r->args[0] = (u32)-1;
	r->args[1] = a->from + ((a->at - a->first) << page_shift);
	r->args[2] = a->count << page_shift;
	r->args[3] = a->at << page_shift;
	r->args[4] = (a->flags & VM_SHARED ? READ_SHARED : 0) | (f->flags & FAULT_STORE ? READ_STORE : 0) |
		     (is_code ? READ_CODE : 0) | (f->flags & FAULT_IN_CALL ? READ_IN_CALL : 0);
	r->args[5] = (a->first + ((f->addr - a->from) >> page_shift)) << page_shift;
	r->nr = -1;
	r->zero = 0;
	w->npieces = w->nbulk = w->failed = 0;
	w->pend.nparts = 0;
	put_file(w, a);
	return 0;
}

/* write_read writes the record, without ever holding the thread for it: that is
 * only allowed on the way back to the program. */
__noinline int write_read(struct work *w, u32 shard)
{
	if (!w)
		return 0;
	struct rec_call *r = (struct rec_call *)w->buf;
	void *rb = bpf_map_lookup_elem(&rings, &shard);
	u64 n = w->len;

	if (!rb)
		return -1;
	w->avail = bpf_ringbuf_query(rb, BPF_RB_AVAIL_DATA);
	if (w->nbulk) {
		u64 len = w->bulk[0].len;
		int err = write_inline(w, shard, n + sizeof(struct piece) + pad8(len));
		if (!err)
			return 0;
		w->nbulk = 0;
		put_piece(w, MAPPED_ARG, PIECE_MISSING, len, 0);
		n = w->len;
	}
	r->npieces = w->npieces;
	r->nobjects = w->nobjects;
	int err = n > BUF_BYTES / 2 ? RING_FULL : output(rb, w->buf, n, wakeup(w, n));
	if (err) {
		lost_by(shard, err);
		return -1;
	}
	w->avail += n + 8;
	return 1;
}

static __always_inline u64 page_addr(struct area *a, u64 page)
{
	return a->from + ((page - a->first) << page_shift);
}

static __always_inline bool readable(u64 addr)
{
	u8 b;
	return !bpf_probe_read_user(&b, 1, (void *)addr);
}

struct stretches {
	struct work *w;
	struct task *st;
	struct fault *f;
	struct area *a;
	u64 lo, n;
	u32 code, zero;
};
static long copy_page(u32 i, struct stretches *c)
{
	struct work *w = c->w;
	struct area *a = c->a;
	u64 page = c->lo + i;
	bool here = i < c->n && readable(page_addr(a, page));

	if (here)
		w->want++;
	if (!w->want || (here && w->want < inline_max >> page_shift))
		return 0;
	a->count = w->want;
	a->at = page + (here ? 1 : 0) - w->want;
	compose_read(w, c->f, a, c->code);
	u64 bytes = page_bytes(a), keep = bytes < read_keep ? bytes : read_keep;
	if (bytes > keep)
		put_piece(w, MAPPED_ARG, PIECE_OMITTED, bytes - keep, keep);
	if (keep)
		add_bulk(w, BULK(MAPPED_ARG, 0, PART_BYTES), page_addr(a, a->at), keep, 0);
	if (!write_read(w, c->st->shard & (MAX_SHARDS - 1)) && a->constant)
		now_known(a);
	w->want = 0;
	return 0;
}

/* copy_pages records the pages of [at, at+count) that are mapped, with their
 * content, one record for each stretch of them. Pages of the range that were not in
 * the cache are not mapped. */
__noinline int copy_pages(struct work *w, struct task *st, struct fault *f, struct area *a)
{
	if (!w || !st || !f || !a)
		return 0;
	struct stretches c = {.w = w, .st = st, .f = f, .a = a, .lo = a->at, .n = a->count, .code = is_code(a)};

	w->want = 0; /* pages of the stretch so far */
	each(c.n + 1, copy_page, &c);
	return 0;
}

/* huge widens a fault of which the page cache said nothing to a huge page, if it
 * was one: then the page at its other end is mapped as well. */
static __always_inline void huge(struct fault *f, struct area *a, u64 last)
{
	u64 lo = a->at & ~(HUGE_PAGES - 1ull), hi = lo + HUGE_PAGES - 1;

	if (lo < a->first || hi >= a->first + ((a->to - a->from) >> page_shift) ||
	    ((a->from >> page_shift) - a->first) & (HUGE_PAGES - 1))
		return;
	if (hi > last)
		hi = last;
	if (!readable(page_addr(a, lo)) || !readable(page_addr(a, hi)) || !readable(page_addr(a, (lo + hi) / 2)))
		return;
	a->at = lo;
	a->count = hi - lo + 1;
}

/* add_pages has the recorder read pages from their file: as the content of the record
 * (MAPPED_ARG), or as a record of their own (NO_CONTENT). */
static __always_inline bool add_pages(struct work *w, struct late *l, u8 arg)
{
	if (w->pend.nparts + 2 > MAX_PARTS)
		return false;
	return add_part(w, arg, PART_PAGES, l->ino, l->len, l->off, l->dev) &&
	       add_part(w, NO_CONTENT, PART_PAGES_AT, l->addr, l->fault, l->time, l->flags);
}

/* join_pages does the same for a thread that is about to be held already. */
static __always_inline bool join_pages(struct pending *p, struct late *l)
{
	u32 n = p->nparts;

	if (n > MAX_PARTS - 2)
		return false;
	struct part *q = &p->parts[n], *at = &p->parts[n + 1];
	*q = (struct part){.addr = l->ino, .len = l->len, .off = l->off, .count = l->dev, .arg = NO_CONTENT, .kind = PART_PAGES};
	*at = (struct part){.addr = l->addr, .len = l->fault, .off = l->time, .count = l->flags, .arg = NO_CONTENT, .kind = PART_PAGES_AT};
	p->nparts = n + 2;
	return true;
}

_Static_assert(sizeof(struct late) <= 64, "late");

/* from_file leaves the content of a record to the recorder: now, if the thread can be
 * held, or with the call under way. */
__noinline int from_file(struct work *w, struct task *st, struct fault *f, struct area *a)
{
	if (!w || !st || !f || !a)
		return 0;
	struct rec_call *r = (struct rec_call *)w->buf;
	u64 page = f->addr >> page_shift;
	struct late *l = (struct late *)w->late;

	*l = (struct late){.ino = a->key.ino, .dev = a->key.dev, .off = a->at << page_shift, .len = page_bytes(a),
			   .addr = r->args[1], .fault = r->args[5], .time = f->time, .flags = r->args[4]};
	if (!blocking() || a->last)
		return 0;
	if (!a->hold) {
		u64 n = f->lates;
		if (n >= MAX_LATE)
			return 0;
		f->late[n] = *l;
		f->lates = n + 1;
		st->flags |= TASK_LATE;
		return 1;
	}
	if (f->held == page) { /* for this it was held, and faulted again */
		f->held = 0;
		return 1;
	}
	f->held = page;
	struct pending_key k = {own_id(), st->npending ? st->npending - 1 : 0};
	struct pending *p = st->flags & TASK_PENDING ? bpf_map_lookup_elem(&pendings, &k) : 0;
	if (p)
		return join_pages(p, l);
	add_pages(w, l, MAPPED_ARG);
	write_call(w, st, 0);
	return 1;
}

/* take records what a fault has mapped. */
__noinline int take(struct work *w, struct task *st, struct fault *f, struct area *a)
{
	if (!w || !st || !f || !a)
		return 0;
	u64 asked = a->first + ((f->addr - a->from) >> page_shift);
	u64 last = a->first + ((a->to - a->from) >> page_shift) - 1;
	bool store = f->flags & FAULT_STORE, shared_area = a->flags & VM_SHARED;

	if (asked << page_shift >= a->size)
		return 0; /* behind the file's end */
	if (store && (shared_area || f->flags & FAULT_IN_CALL))
		return 0; /* stored to, not read; or overwritten by a call */
	if (last > (a->size - 1) >> page_shift)
		last = (a->size - 1) >> page_shift;
	a->at = asked;
	a->count = 1;
	if (store) {
	} else if (f->flags & FAULT_AROUND) {
		u64 lo = f->lo > a->first ? f->lo : a->first, hi = f->hi < last ? f->hi : last;
		if (asked < lo || asked > hi || hi - lo >= HUGE_PAGES)
			return 0;
		a->at = lo;
		a->count = hi - lo + 1;
	} else if (!(f->flags & FAULT_PAGE)) {
		if (a->copied && !store)
			return 0; /* a page of its own that was swapped out */
		huge(f, a, last);
		if (a->count == 1 && !a->tmpfs)
			return 0;
	}
	u32 lib = is_code(a);
	if (lib && mmap_mode != MMAP_FULL) {
		if (all_known(a))
			return 0;
		compose_read(w, f, a, lib);
		put_piece(w, MAPPED_ARG, PIECE_OMITTED, page_bytes(a), 0);
		if (write_read(w, st->shard & (MAX_SHARDS - 1)) >= 0)
			now_known(a);
		return 0;
	}
	compose_read(w, f, a, lib);
	if (a->constant && all_known(a)) {
		put_piece(w, MAPPED_ARG, PIECE_OMITTED | PIECE_BEFORE, page_bytes(a), 0);
		write_read(w, st->shard & (MAX_SHARDS - 1));
		return 0;
	}
	/* Not what is in memory: the program may have stored to its copy, or others may
	 * have stored what is not recorded yet. */
	struct file_key k = a->key;
	if (store || a->copied || (shared.mapped && bpf_map_lookup_elem(&stores, &k))) {
		if (from_file(w, st, f, a))
			return 0;
		if (store || a->copied) {
			put_piece(w, MAPPED_ARG, PIECE_MISSING, page_bytes(a), 0);
			write_read(w, st->shard & (MAX_SHARDS - 1));
			return 0;
		}
	}
	return copy_pages(w, st, f, a);
}

/* leave_fault leaves a fault to the recorder, with the next call that returns. */
static __always_inline bool leave_fault(struct task *st, struct fault *f)
{
	u64 lo = f->flags & FAULT_AROUND ? f->lo : 0, hi = f->flags & FAULT_AROUND ? f->hi : 0;

	if (!blocking())
		return false;
	u64 n = *(volatile u64 *)&f->lates;
	if (n >= MAX_LATE)
		return false;
	f->late[n] = (struct late){.off = lo << page_shift, .len = (hi - lo + 1) << page_shift, .addr = f->addr, .time = f->time, .flags = f->flags};
	f->lates = n + 1;
	st->flags |= TASK_LATE;
	return true;
}

struct asking {
	u64 addr;
	long err;
};
static long ask_again(u32 i, struct asking *c)
{
	struct work *w = this_work();

	if (c->err != -EBUSY || !w)
		return 1;
	area_at(w, c->addr, &c->err);
	return 0;
}

/* resolve records a fault that is over. HOLD says that the thread is on its way back
 * to the program, LAST that it has another fault already, ENDS that it ends. */
enum { HOLD = 1, LAST = 2, ENDS = 4 };
static __always_inline int resolve(struct task *st, struct fault *f, u64 mapping, u32 how)
{
	struct work *w = this_work();
	bool hold = how & HOLD;
	struct asking c = {.addr = f->addr};

	if (!w)
		return 0;
	struct area *a = area_at(w, f->addr, &c.err);
	if (how & ENDS) /* now or never: others change the address space at the moment */
		each(2048, ask_again, &c);
	long err = c.err;

	if (!(how & LAST)) {
		if (err == -EBUSY && f->flags & (FAULT_AROUND | FAULT_PAGE))
			return 0; /* once more at the next hook */
		/* The program's copy of a page that it stores to: the recorder reads the
		 * file's as soon as the thread can be held. */
		if (!err && a->key.ino && f->flags & FAULT_STORE && !(a->flags & VM_SHARED) && !hold)
			return 0;
	} else if (err == -EBUSY && f->flags & (FAULT_AROUND | FAULT_PAGE)) {
		if (how & ENDS || !leave_fault(st, f))
			__sync_fetch_and_add(&shared.pages, 1);
	}
	st->flags &= ~TASK_FAULT;
	if (!err && !a->key.ino && f->addr) {
		u32 k = f->turn++ & 1;
		f->anon[k] = a->from;
		f->anon_bytes[k] = a->to - a->from;
	}
	if (!err && a->key.ino && (!mapping || mapping == a->mapping)) {
		begin(&a->now);
		a->hold = hold;
		a->last = how & LAST && !hold;
		if (!(st->flags & TASK_IDENTIFIED))
			emit_task(w, st, a->now);
		if (st->flags & TASK_IDENTIFIED)
			take(w, st, f, a);
		else
			lose(st->shard);
		if (hold)
			pressure(w, st, false);
		end();
	}
	f->addr = 0;
	return 0;
}

/* settle records the thread's last fault, if that could not be done at once. */
__noinline int settle(struct task *st, u32 how)
{
	if (!st)
		return 0;
	struct fault *f = bpf_task_storage_get(&faults, bpf_get_current_task_btf(), 0, 0);

	if (!f || !f->addr) {
		st->flags &= ~TASK_FAULT;
		return 0;
	}
	return resolve(st, f, 0, how);
}

static __always_inline int on_fault(u64 addr, u64 error, u64 flags)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct fault *f = bpf_task_storage_get(&faults, t, 0, 0);
	u32 i;

	if (!f || released() || addr >> 63 || at_work())
		return 0;
	if (f->addr) {
		struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);
		if (st)
			settle(st, LAST | (flags ? 0 : HOLD));
	}
	if (error & 1)
		return 0; /* the page is there: its protection was violated */
	if (f->anon_at != shared.mappings) {
		f->anon_at = shared.mappings;
		f->anon_bytes[0] = f->anon_bytes[1] = 0;
	}
	for (i = 0; i < 2; i++)
		if (addr - f->anon[i] < f->anon_bytes[i])
			return 0;
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);
	if (!st)
		return 0;
	f->addr = addr;
	f->time = bpf_ktime_get_ns();
	f->flags = flags | (error & 2 ? FAULT_STORE : 0);
	st->flags |= TASK_FAULT;
	return 0;
}

/* pages_mapped: the fault under way has mapped pages that are in the page cache. */
static __always_inline int pages_mapped(struct address_space *mapping, u64 first, u64 last)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct fault *f = bpf_task_storage_get(&faults, t, 0, 0);

	if (!f || !f->addr || released())
		return 0;
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);
	if (!st)
		return 0;
	f->lo = first;
	f->hi = last;
	f->flags = (f->flags & ~FAULT_PAGE) | FAULT_AROUND;
	return resolve(st, f, (u64)mapping, f->flags & FAULT_IN_CALL ? 0 : HOLD);
}

/* page_missed: the page cache is asked for the one page of the fault under way. */
static __always_inline int page_missed(void)
{
	struct fault *f = bpf_task_storage_get(&faults, bpf_get_current_task_btf(), 0, 0);

	if (f && f->addr)
		f->flags |= FAULT_PAGE;
	return 0;
}
