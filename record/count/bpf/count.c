// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* Counting programs: what followed threads call is summed up here, and nothing of a call
 * is written down. They know calls as the recording programs do (call.h, prefilter.h) and
 * follow threads as these do (follow.h), but are far fewer, so that they load quickly.
 *
 * The sums are in a hash map of this CPU's own values. Two such maps take turns: at a
 * read-out user space puts an empty one in the place of the one in use, and, once the
 * programs that run have ended, which the kernel waits for, has the old one to itself.
 * So every call is in exactly one read-out, and what ended needs no removing. */
#include "follow.h"
#include "prefilter.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#if defined(__TARGET_ARCH_arm64)
#define EXECVE_NR 221
#else
#define EXECVE_NR 59
#endif

#define MAX_MESSAGES 1024 /* of one call (UIO_MAXIOV, linux/uio.h) */

/* What rows are told apart by; all else of a key is 0. */
enum { BY_OP = 1, BY_USER = 2, BY_PROCESS = 4, BY_EXTENSION = 8, BY_LATENCY = 16 };
const volatile u32 by = 0;

/* A row's key. That of the row for all that found no room is OTHER_OP alone, and is
 * always there. */
struct count_key {
	u64 comm[2], ext[2];
	u32 uid, pid;
	u16 op;
	u8 octave; /* 1 + the logarithm of the latency, rounded down; 0: it did not return */
	u8 zero[5];
};
_Static_assert(sizeof(struct count_key) == 48, "count_key");
#define OTHER_OP 0xffff

/* Four buckets for each power of two, from 64 ns on (aggregate.BucketOf). */
enum { BUCKETS = 128, FIRST_OCTAVE = 6 };
struct counts {
	u64 calls, failed, unfinished; /* unfinished: did not return */
	u64 read, written;             /* bytes */
	u64 ns, max;                   /* of those that returned */
	u32 buckets[BUCKETS];
};
const volatile struct counts nothing = {};

struct counting {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__uint(key_size, sizeof(struct count_key));
	__uint(value_size, sizeof(struct counts));
};
const struct count_key *count_key_type __attribute__((unused));
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct counting);
} in_use SEC(".maps");

/* The extensions of the names of open files, as in "names". */
struct extension {
	u64 inode, ext[2];
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct extension);
} extensions SEC(".maps");

/* after_dot returns what stands behind the last dot of a name that ends so. */
static __always_inline void after_dot(const u64 tail[2], u64 ext[2])
{
	u32 i, skip = 0; /* bytes up to and with the dot */

	for (i = 0; i < 16; i++) {
		u8 c = tail[i >> 3] >> 8 * (i & 7);
		if (c == '.')
			skip = i + 1;
		else if (c == '/')
			skip = 0;
	}
	if (!skip)
		return;
	if (skip >= 8) {
		ext[0] = tail[1] >> 8 * (skip - 8);
		return;
	}
	ext[0] = tail[0] >> 8 * skip | tail[1] << (64 - 8 * skip);
	ext[1] = tail[1] >> 8 * skip;
}

/* name_of finds the extension of the name that a call has. It returns 0 if the call has
 * none, or an empty one. */
__noinline int name_of(struct work *w, struct task *st, struct spec *s, struct extension *e)
{
	if (!w || !st || !s || !e)
		return 0;
	u32 name = s->name - 1u;
	u64 tail[2] = {};

	if (name >= IOT_MAX_ARGS)
		return 0;
	if (name_tail(w, st->args[name], true, tail))
		after_dot(tail, e->ext);
	return w->buf[16] != 0;
}

/* extension_of finds the extension of what a call is about: of the name that it has, or
 * else of the name that its first descriptor was opened by. */
static __always_inline void extension_of(struct task *st, struct spec *s, struct extension *e)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct work *w = bpf_map_lookup_elem(&works, &cpu);

	if (!w || name_of(w, st, s, e))
		return;
	struct file *f = file_of(first_fd(st, s));
	u64 key = (u64)f;
	struct extension *known = f ? bpf_map_lookup_elem(&extensions, &key) : 0;
	if (known && known->inode == inode_of(f)) {
		e->ext[0] = known->ext[0];
		e->ext[1] = known->ext[1];
	}
}

/* octave_of returns the logarithm to base 2, rounded down; of 0, 0. */
static __always_inline u32 octave_of(u64 v)
{
	u32 r = 0;

	if (v >> 32) { v >>= 32; r += 32; }
	if (v >> 16) { v >>= 16; r += 16; }
	if (v >> 8) { v >>= 8; r += 8; }
	if (v >> 4) { v >>= 4; r += 4; }
	if (v >> 2) { v >>= 2; r += 2; }
	return r + (v >> 1 & 1);
}

static __always_inline u32 bucket_of(u64 ns, u32 octave)
{
	if (octave < FIRST_OCTAVE)
		return 0;
	u32 b = 1 + 4 * (octave - FIRST_OCTAVE) + (ns >> (octave - 2) & 3);
	return b < BUCKETS ? b : BUCKETS - 1;
}

static __always_inline struct counts *row_of(void *m, struct count_key *k)
{
	struct counts *c = bpf_map_lookup_elem(m, k);

	if (c)
		return c;
	bpf_map_update_elem(m, k, (void *)&nothing, BPF_NOEXIST); /* another CPU may be first */
	c = bpf_map_lookup_elem(m, k);
	if (c)
		return c;
	struct count_key other = { .op = OTHER_OP };
	return bpf_map_lookup_elem(m, &other);
}

/* note_names notes the name that a descriptor was opened by, counted or not. */
static __always_inline void note_names(struct task *st, struct spec *s, s64 ret)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct work *w = bpf_map_lookup_elem(&works, &cpu);
	struct extension e = {};

	if (!w)
		return;
	if (suffixes)
		name_file(w, st, s, ret);
	struct file *f = by & BY_EXTENSION ? file_of(ret) : 0;
	if (!f || !name_of(w, st, s, &e))
		return;
	u64 key = (u64)f;
	e.inode = inode_of(f);
	bpf_map_update_elem(&extensions, &key, &e, BPF_ANY);
}

struct messages {
	u64 vector, sum;
	u32 stride, zero;
};
static __always_inline long add_message(u32 i, struct messages *m)
{
	u32 len = 0;

	bpf_probe_read_user(&len, sizeof(len), (void *)(m->vector + m->stride * (i + 1ull) - (m->stride == 32 ? 4 : 8)));
	m->sum += len;
	return 0;
}

/* message_bytes is what the first n messages of a call have: each struct mmsghdr, the second
 * argument's, says so behind its msghdr (linux/socket.h; of 32 bits: net/compat.h). */
static __noinline u64 message_bytes(struct task *st, u64 n)
{
	if (!st)
		return 0;
	struct messages m = { .vector = st->args[1], .stride = st->flags & TASK_COMPAT ? 32 : 64 };
	each(n < MAX_MESSAGES ? n : MAX_MESSAGES, add_message, &m);
	return m.sum;
}

/* count sums a call up that has returned, or that will not. */
static __noinline int count(struct task *st, struct spec *s, s64 ret, bool returned)
{
	u64 ns = bpf_ktime_get_ns();
	struct count_key k = {};
	u32 zero = 0, octave;

	if (!st || !s)
		return 0;
	ns = ns > st->enter ? ns - st->enter : 0;
	octave = octave_of(ns);
	if (by & BY_OP)
		k.op = s->op;
	if (by & BY_USER)
		k.uid = st->uid;
	if (by & BY_PROCESS) {
		k.pid = own_id() >> 32;
		k.comm[0] = st->comm[0];
		k.comm[1] = st->comm[1];
	}
	if (by & BY_EXTENSION) {
		struct extension e = {};
		extension_of(st, s, &e);
		k.ext[0] = e.ext[0];
		k.ext[1] = e.ext[1];
	}
	if (by & BY_LATENCY && returned)
		k.octave = 1 + octave;
	void *m = bpf_map_lookup_elem(&in_use, &zero);
	struct counts *c = m ? row_of(m, &k) : 0;
	if (!c)
		return lose(0);
	c->calls++;
	if (!returned) {
		c->unfinished++;
		return 0;
	}
	c->ns += ns;
	if (ns > c->max)
		c->max = ns;
	c->buckets[bucket_of(ns, octave) & (BUCKETS - 1)]++;
	if (failed(ret)) {
		c->failed++;
		return 0;
	}
	if (ret <= 0 || !s->moves)
		return 0;
	u64 bytes = s->moves & MOVES_MESSAGES ? message_bytes(st, ret) : ret;
	if (s->moves & MOVES_READ)
		c->read += bytes;
	if (s->moves & MOVES_WRITTEN)
		c->written += bytes;
	return 0;
}

static __always_inline bool refused(struct task *st, struct spec *s, s64 ret)
{
	return s->prefilter == ROW_DROP || (s->prefilter >= ROW_STEPS && prefiltered(st, s->prefilter - ROW_STEPS, ret, first_fd(st, s)));
}

SEC("tp_btf/sys_enter")
int BPF_PROG(count_enter, struct pt_regs *regs, long nr)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *st = followed(t);

	if (!st || released())
		return 0;
	if (st->flags & TASK_BEFORE_EXEC && nr != EXECVE_NR)
		return 0;
	st->flags = (st->flags & ~(TASK_COMPAT | TASK_JOINED | TASK_BEFORE_EXEC)) | TASK_IN_CALL;
	read_args(st, regs);
	st->nr = nr;
	st->tid = tid_of(t);
	struct spec *s = spec_of(st);
	if (!s)
		return 0;
	if (s->prefilter == ROW_DROP && !(s->flags & (SPEC_FD_RESULT | SPEC_IDENTITY))) {
		st->flags &= ~TASK_IN_CALL;
		return 0;
	}
	if (!(st->flags & TASK_IDENTIFIED)) {
		identify(st, self());
		st->flags |= TASK_IDENTIFIED;
	}
	st->enter = bpf_ktime_get_ns();
	if (s->flags & SPEC_NO_RETURN) {
		st->flags &= ~TASK_IN_CALL;
		if (!refused(st, s, 0))
			count(st, s, 0, false);
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(count_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *st = followed(t);

	if (!st || st->flags & TASK_BEFORE_EXEC || !(st->flags & (TASK_IN_CALL | TASK_JOINED)) || released())
		return 0;
	if (st->flags & TASK_JOINED) {
		join_call(st, regs);
		identify(st, self());
		st->flags |= TASK_IDENTIFIED;
	}
	struct spec *s = spec_of(st);
	st->flags &= ~TASK_IN_CALL;
	if (!s)
		return 0;
	if (!refused(st, s, ret))
		count(st, s, ret, true);
	if (s->flags & SPEC_FD_RESULT && !failed(ret))
		note_names(st, s, ret);
	if (s->flags & SPEC_IDENTITY && !failed(ret))
		identify(st, self());
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(count_fork, struct task_struct *parent, struct task_struct *child)
{
	struct task *pst = followed(parent);
	struct task init = {};

	if (!pst) {
		fork_unfollowed(parent, child);
		return 0;
	}
	if (released() || pst->flags & TASK_BEFORE_EXEC)
		return 0;
	if (!bpf_task_storage_get(&tasks, child, &init, BPF_LOCAL_STORAGE_GET_F_CREATE))
		__sync_fetch_and_add(&shared.untracked, 1);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(count_end, struct task_struct *t)
{
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);

	if (!st || st->flags & (TASK_EXCLUDED | TASK_BEFORE_EXEC) || released())
		return 0;
	struct spec *s = spec_of(st);
	if (s && st->flags & TASK_IN_CALL && !refused(st, s, 0))
		count(st, s, 0, false);
	bpf_task_storage_delete(&tasks, t);
	return 0;
}

/* Threads that are followed otherwise than from a command on (follow.h). */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup_attach, struct cgroup *dst, const char *path, struct task_struct *leader, bool threadgroup)
{
	return cgroup_attached(dst, leader, threadgroup);
}

SEC("iter/task")
int follow_listed(struct bpf_iter__task *ctx)
{
	return follow_if_listed(ctx);
}

SEC("iter/task")
int count_followed(struct bpf_iter__task *ctx)
{
	return count_thread(ctx);
}
