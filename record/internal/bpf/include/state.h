// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the programs of recording and of counting have in common: maps, the work space, and
 * small helpers. */
#pragma once

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "record.h"
#include "namespace.h"

extern int bpf_probe_read_user_dynptr(struct bpf_dynptr *d, u64 off, u64 size, const void *src) __ksym __weak;
extern int bpf_probe_read_user_str_dynptr(struct bpf_dynptr *d, u64 off, u64 size, const void *src) __ksym __weak;
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym __weak;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *p) __ksym __weak;
extern int bpf_send_signal_task(struct task_struct *task, int sig, enum pid_type type, u64 value) __ksym __weak;
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym __weak;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym __weak;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym __weak;
extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *t, unsigned int flags) __ksym __weak;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym __weak;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym __weak;

/* What the kernel has, as probed (features.go). The verifier removes what is not taken. */
const volatile bool casts = false;          /* bpf_rdonly_cast */
const volatile bool iterates = false;       /* bpf_iter_num_new and its like */
const volatile bool iterates_tasks = false; /* bpf_iter_task_new and its like */

static __always_inline int begin_repeat(struct bpf_iter_num *it, int n)
{
	if (iterates)
		bpf_iter_num_new(it, 0, n);
	else
		*(volatile u64 *)it = 0;
	return 0;
}
static __always_inline void next_repeat(struct bpf_iter_num *it)
{
	if (!iterates)
		++*(volatile u64 *)it;
	asm volatile("goto +0");
}
static __always_inline void end_repeat(struct bpf_iter_num *it)
{
	if (iterates)
		bpf_iter_num_destroy(it);
}

/* repeat runs its body for i = 0 … n-1, n unknown to the verifier. Where the kernel has no
 * iterators the verifier follows each round, so there are at most max: the room of the iterator
 * counts them. (Kernels before 6.4 allow no loop whose last instruction is a call, and have a jump
 * there, which the verifier removes.) */
#define repeat(i, n, max) \
	for (struct bpf_iter_num _it __attribute__((aligned(8), cleanup(end_repeat))), \
	     *_p __attribute__((unused)) = (begin_repeat(&_it, (n)), (struct bpf_iter_num *)0); \
	     ({ \
		     bool _go; \
		     if (iterates) { \
			     int *_n = bpf_iter_num_next(&_it); \
			     _go = _n != 0; \
			     i = _go ? *_n : 0; \
		     } else { \
			     u64 _k = *(volatile u64 *)&_it; \
			     i = _k; \
			     _go = _k < (max) && _k < (u64)(n); \
		     } \
		     _go; \
	     }); \
	     next_repeat(&_it))

/* each calls step(i, context) for i = 0 … n-1 until it returns 1: for loops that are too long for
 * repeat where the kernel has no iterators. The verifier looks at step as at one round, but it takes a frame. */
#define each(n, step, context) bpf_loop(n, step, context, 0)

/* MEMBER reads a member of a kernel object that the verifier may know only the address of. */
#define MEMBER(p, member) \
	({ \
		typeof(p) _p = (p); \
		typeof(_p->member) _v = 0; \
		if (casts) { \
			_p = bpf_rdonly_cast(_p, bpf_core_type_id_kernel(typeof(*_p))); \
			_v = _p->member; \
		} else { \
			bpf_core_read((void *)&_v, sizeof(_v), &_p->member); \
		} \
		_v; \
	})

const volatile u32 shard_mask = 0;
const volatile u32 recorder = 0; /* its process, by the number that the machine has for it */

struct common shared;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct spec);
} table SEC(".maps");
#define UNKNOWN_NR 511
#define COMPAT_NR 512 /* where the rows of 32-bit calls begin */

/* Work space of the hook that runs on a CPU: system-call tracepoints run with
 * preemption off. (A per-CPU map's value ends at 32 KiB.) */
#define MAX_IOVECS 1024
#define IOVEC_BYTES 16
#define ARGV_SMALL 32768              /* argument vectors up to this are composed in buf */
#define COMPOSE_MAX 40960             /* where the last string may begin */
#define BUF_BYTES (128 << 10)
#define CHUNK_BYTES (16 << 10)        /* copied at a time where the kernel does not copy into rings */
struct iovec {
	u64 base, len;
};
#define AREA_WORDS 24 /* room for a struct area, and for the head of a record */
enum { ENDS_NONE, ENDS_DATAGRAMS, ENDS_ALL };
#define MAX_BULKS 4
/* Content that is copied from the program straight into the ring. */
struct bulk {
	u64 addr;
	u64 len;
	u64 off;   /* how much of it is done */
	u32 count; /* elements in work.iov; 0: addr is the bytes */
	u32 arg;   /* with the piece's flags << 8, and the kind of a struct part << 16 */
};
struct work {
	u64 len;   /* composed bytes in buf */
	u64 avail; /* bytes in the ring that the recorder has not taken */
	u32 npieces, nobjects, nbulk, failed;
	u64 no_tracee; /* the hook runs in a thread that is not followed, and cannot be held */
	u64 kept;   /* iov was read from the program some time ago */
	u64 want, done, skip; /* of the copy under way */
	u64 element;          /* of work.iov, likewise */
	u64 from, to, elements; /* likewise: address in the program, place in the record, length of work.iov */
	u64 total;            /* bytes of the record under way */
	u64 taken;            /* control blocks that io_submit took */
	u64 late[8];          /* room for a struct late */
	u64 names, controls, shapes, data; /* bytes of the messages so far */
	u64 niov;
	u64 current;          /* of work.bulk: which is being written */
	u32 ends, nsockets; /* ENDS_…: whether the ends of sockets are told; how many there are */
	struct {
		u64 socket, object; /* struct socket, and which of the record's objects it is */
	} sockets[IOT_MAX_SOCKETS];
	struct bulk bulk[MAX_BULKS];
	struct pending pend;
	u64 area[AREA_WORDS];
	struct iovec iov[MAX_IOVECS];
	u8 buf[BUF_BYTES];
	u8 chunk[CHUNK_BYTES];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct work);
} works SEC(".maps");

/* MASKED returns n & mask of a number that was compared already, in a way that the compiler leaves in: old
 * verifiers forget what they know of a number from before it was written to the stack. */
#define MASKED(n, mask) \
	({ \
		u64 _n = (n); \
		asm volatile("%0 &= %1" : "+r"(_n) : "i"(mask)); \
		_n; \
	})

/* bounded is MASKED of a place in work.buf, or of a length that is copied to there. */
static __always_inline u64 bounded(u64 n)
{
	_Static_assert(COMPOSE_MAX + 1024 < 0x10000 && 2 * 0x10000 <= BUF_BYTES, "bounded");
	return MASKED(n, 0xffff);
}

static __always_inline u64 pad8(u64 n) { return (n + 7) & ~7ull; }
static __always_inline bool failed(s64 ret) { return ret < 0 && ret >= -4095; }

/* has_delays says whether the kernel counts how long threads wait for a processor
 * (CONFIG_SCHED_INFO). It is known when the programs are loaded. */
static __always_inline bool has_delays(void)
{
	return bpf_core_field_exists(struct task_struct, sched_info.run_delay);
}

/* waited is how many ns a thread has waited for a processor so far: from when it could
 * run to when it did, as /proc/PID/schedstat says. */
static __always_inline u64 waited(struct task_struct *t)
{
	return has_delays() ? t->sched_info.run_delay : 0;
}

/* delay_between fits a difference into 32 bits. */
static __always_inline u32 delay_between(u64 from, u64 to)
{
	s64 ns = to - from;

	return ns < 0 ? 0 : ns > ~0u ? ~0u : ns;
}

/* lose counts a record that its ring has no room for. */
static __noinline int lose(u32 shard)
{
	shard &= MAX_SHARDS - 1;
	if (!shared.lost_at[shard])
		shared.lost_at[shard] = bpf_ktime_get_ns();
	__sync_fetch_and_add(&shared.lost[shard], 1);
	return 0;
}

/* released says that the recording was cancelled, blocking that threads may be held. */
static __always_inline bool released(void) { return *(volatile u64 *)&shared.release; }

/* self is the current thread, to look at. To the verifier it is memory that may be read
 * with checks, as the memory that its pointers lead to: for a trusted pointer it looks
 * the name of each of its fields' types up among all the kernel's, which took half of
 * the time to load the programs. (Before Linux 6.2 there are no trusted pointers.) */
static __always_inline struct task_struct *self(void)
{
	if (casts)
		return bpf_rdonly_cast(bpf_get_current_task_btf(), bpf_core_type_id_kernel(struct task_struct));
	return bpf_get_current_task_btf();
}

/* pointer_at and word_at load from kernel memory by one checked instruction, where
 * bpf_probe_read_kernel costs two calls: by casting to a type that begins with a
 * pointer or a word. */
static __always_inline void *pointer_at(const void *p)
{
	void *v = 0;

	if (casts) {
		struct list_head *l = bpf_rdonly_cast(p, bpf_core_type_id_kernel(struct list_head));
		return l->next;
	}
	bpf_probe_read_kernel(&v, sizeof(v), p);
	return v;
}
static __always_inline unsigned long word_at(const void *p)
{
	unsigned long v = 0;

	if (casts) {
		struct thread_info *t = bpf_rdonly_cast(p, bpf_core_type_id_kernel(struct thread_info));
		return t->flags;
	}
	bpf_probe_read_kernel(&v, sizeof(v), p);
	return v;
}
