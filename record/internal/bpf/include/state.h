/* Maps, constants and the small helpers that everything uses. */
#pragma once

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "record.h"

extern int bpf_probe_read_user_dynptr(struct bpf_dynptr *d, u64 off, u64 size, const void *src) __ksym;
extern int bpf_probe_read_user_str_dynptr(struct bpf_dynptr *d, u64 off, u64 size, const void *src) __ksym;
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern int bpf_send_signal_task(struct task_struct *task, int sig, enum pid_type type, u64 value) __ksym;
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;
extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *t, unsigned int flags) __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym;

/* repeat runs its body for i = 0 … n-1, n unknown to the verifier. (The mention of
 * bpf_iter_num_destroy makes clang emit its type, which cleanup alone does not.) */
#define repeat(i, n) \
	for (struct bpf_iter_num _it __attribute__((aligned(8), cleanup(bpf_iter_num_destroy))), \
	     *_p __attribute__((unused)) = \
		     (bpf_iter_num_new(&_it, 0, (n)), (void)bpf_iter_num_destroy, (struct bpf_iter_num *)0); \
	     ({ int *_n = bpf_iter_num_next(&_it); bool _go = _n != 0; i = _go ? *_n : 0; _go; });)

const volatile u32 shard_mask = 0;
const volatile u64 ring_bytes = 0;  /* of one ring */
const volatile u64 inline_max = 0;  /* content bytes of one record */
const volatile u32 recorder = 0;    /* its process */
const volatile bool block = false;  /* hold threads rather than lose records */

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

#define SIGCHLD 17
#define SIGSTOP 19
#define SIGURG 23
#define SIGWINCH 28
#define SA_RESTART 0x10000000

/* What fcntl's commands, ioctl's requests and the like make of an argument: by
 * operation << 32 | value. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct cap);
} commands SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct pending_key);
	__type(value, struct pending);
} pendings SEC(".maps");

/* Threads that were told to stop and that the recorder has not seen yet. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, struct held);
} holding SEC(".maps");

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_SHARDS);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps");

/* Work space of the hook that runs on a CPU: system-call tracepoints run with
 * preemption off. (A per-CPU map's value ends at 32 KiB.) */
#define MAX_IOVECS 1024
#define IOVEC_BYTES 16
#define ARGV_SMALL 32768              /* argument vectors up to this are composed in buf */
#define COMPOSE_MAX 40960             /* where the last string may begin */
#define BUF_BYTES (128 << 10)
struct iovec {
	u64 base, len;
};
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
	u64 adrift; /* no thread of the program is at hand that could be held */
	u64 kept;   /* iov was read from the program some time ago */
	u64 want, done, skip; /* of the copy under way */
	u64 names, controls, shapes, data; /* bytes of the messages so far */
	u64 niov;
	struct bulk bulk[MAX_BULKS];
	struct pending pend;
	struct iovec iov[MAX_IOVECS];
	u8 buf[BUF_BYTES];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct work);
} works SEC(".maps");

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

/* begin returns the CPU's work space. Until end, the recorder takes no clock
 * reading as "all before this was seen" that is after the one that follows. */
static __always_inline struct work *begin(u64 *now)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_slot *s = &shared.cpus[cpu & (MAX_CPUS - 1)];
	*(volatile u64 *)&s->active = 1;
	s->interrupts = 0; /* threads alone come here: should the count have gone wrong */
	*now = bpf_ktime_get_ns();
	*(volatile u64 *)&s->since = *now;
	return bpf_map_lookup_elem(&works, &cpu);
}

static __always_inline void end(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	*(volatile u64 *)&shared.cpus[cpu & (MAX_CPUS - 1)].active = 0;
}

static __noinline int lose(u32 shard)
{
	shard &= MAX_SHARDS - 1;
	if (!shared.lost_at[shard])
		shared.lost_at[shard] = bpf_ktime_get_ns();
	__sync_fetch_and_add(&shared.lost[shard], 1);
	return 0;
}

/* wakeup says whether a record that takes n bytes wakes the recorder: when it
 * brings a ring past a quarter. It looks by itself every few ms. */
static __always_inline u64 wakeup(struct work *w, u64 n)
{
	u64 quarter = ring_bytes / 4;
	return w->avail < quarter && w->avail + n >= quarter ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* try_small writes a record that stands in memory as a whole. */
static __always_inline int try_small(struct work *w, u32 shard, void *rec, u64 n)
{
	void *rb = bpf_map_lookup_elem(&rings, &shard);
	if (!rb)
		return -1;
	w->avail = bpf_ringbuf_query(rb, BPF_RB_AVAIL_DATA);
	if (bpf_ringbuf_output(rb, rec, n, wakeup(w, n)))
		return -1;
	w->avail += n + 8;
	return 0;
}

/* put_small does the same, or counts the record as lost. */
static __always_inline void put_small(struct work *w, u32 shard, void *rec, u64 n)
{
	if (try_small(w, shard, rec, n))
		lose(shard);
}

/* released says that the recording was cancelled, blocking that threads may be held. */
static __always_inline bool released(void) { return *(volatile u64 *)&shared.release; }

/* self is the current thread, to look at. To the verifier it is memory that may be read
 * with checks, as the memory that its pointers lead to: for a trusted pointer it looks
 * the name of each of its fields' types up among all the kernel's, which took half of
 * the time to load the programs. */
static __always_inline struct task_struct *self(void)
{
	return bpf_rdonly_cast(bpf_get_current_task_btf(), bpf_core_type_id_kernel(struct task_struct));
}

/* blocking says whether the thread may be held: only its tracer sees that it stopped,
 * and that is the recorder unless it could not or may no longer trace it. */
static __always_inline bool blocking(void)
{
	struct task_struct *t = self();
	return block && !released() && t->ptrace && t->parent->tgid == recorder;
}

/* pointer_at and word_at load from kernel memory by one checked instruction, where
 * bpf_probe_read_kernel costs two calls: by casting to a type that begins with a
 * pointer or a word. */
static __always_inline void *pointer_at(const void *p)
{
	struct list_head *l = bpf_rdonly_cast(p, bpf_core_type_id_kernel(struct list_head));
	return l->next;
}
static __always_inline unsigned long word_at(const void *p)
{
	struct thread_info *t = bpf_rdonly_cast(p, bpf_core_type_id_kernel(struct thread_info));
	return t->flags;
}

/* is_idle says whether a signal would reach the thread and then do nothing, or, with
 * handled, only run a handler that restarts calls. */
static __always_inline bool is_idle(struct task_struct *t, int sig, bool handled)
{
	void *a = (void *)t->sighand + bpf_core_field_offset(struct sighand_struct, action) +
		  (sig - 1) * bpf_core_type_size(struct k_sigaction) + bpf_core_field_offset(struct k_sigaction, sa);

	if (t->blocked.sig[0] >> (sig - 1) & 1)
		return false;
	if (handled)
		return word_at(a + bpf_core_field_offset(struct sigaction, sa_flags)) & SA_RESTART;
	return word_at(a + bpf_core_field_offset(struct sigaction, sa_handler)) <= 1; /* SIG_DFL, SIG_IGN */
}

/* hold_signal chooses the signal that stops the thread for its tracer. If the tracer
 * dies, the signal is delivered: then it had better mean nothing. SIGSTOP, which
 * stops the process, is for threads that let nothing else through. */
static __always_inline int hold_signal(struct task_struct *t)
{
	if (is_idle(t, SIGWINCH, false))
		return SIGWINCH;
	if (is_idle(t, SIGURG, false))
		return SIGURG;
	if (is_idle(t, SIGCHLD, false))
		return SIGCHLD;
	return is_idle(t, SIGURG, true) ? SIGURG : SIGSTOP;
}

/* hold stops the thread on its way back to the program, for the recorder, which finds
 * it listed. Should the recorder die, the guardian lets those go on that are (guard.go). */
static __noinline int hold(struct task *st)
{
	struct task_struct *t = self();
	struct held h = { .pid = t->tgid, .sig = hold_signal(t), .start = t->start_boottime };
	u32 tid = t->pid;

	if (bpf_map_update_elem(&holding, &tid, &h, BPF_ANY))
		return -1;
	st->flags |= TASK_HELD;
	if (bpf_send_signal_thread(h.sig))
		return -1;
	__sync_fetch_and_add(&shared.stops, 1);
	return 0;
}

static __always_inline void unlist(struct task *st)
{
	u32 tid = bpf_get_current_pid_tgid();

	st->flags &= ~TASK_HELD;
	bpf_map_delete_elem(&holding, &tid);
}
