// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who is followed, when that is not a command and what comes of it alone: threads
 * that ran before, those of a cgroup, or all of the machine. */
#pragma once

#include "call.h"
#include "joined.h" /* of the programs that include this */

#define PF_KTHREAD 0x00200000 /* linux/sched.h */

const volatile bool whole_host = false;
const volatile u64 began = 0;     /* ns; no call that is under way began to be recorded before */
const volatile u64 cgroup_id = 0; /* processes in it, or below it, are followed; 0: none */

/* join follows a thread that runs already. (A function of its own for its stack.) */
static __noinline struct task *join(struct task_struct *t, u32 flags)
{
	struct task init = {};

	joined(t);
	init.shard = (u32)t->pid & shard_mask;
	init.flags = flags;
	init.enter = began;
	init.returned = DELAY_UNKNOWN;
	return bpf_task_storage_get(&tasks, t, &init, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* stays_out says whether a thread is never followed: the kernel's, the recorder's, and what the
 * recorder's pid namespace has not. */
static __always_inline bool stays_out(struct task_struct *t)
{
	return t->flags & PF_KTHREAD || t->tgid == recorder || (pid_level && !tgid_of(t));
}

#define MAX_LEVELS 128 /* of cgroups that are looked at */

/* below says whether a process is in the cgroup or one below it. */
static __always_inline bool below(struct cgroup *c)
{
	u32 i, level = BPF_CORE_READ(c, level);

	repeat(i, level + 1, MAX_LEVELS) {
		struct cgroup *a;
		if (bpf_probe_read_kernel(&a, sizeof(a), &c->ancestors[i]))
			return false;
		if (BPF_CORE_READ(a, kn, id) == cgroup_id)
			return true;
	}
	return false;
}

/* join_late follows the calling thread if it is in the cgroup. */
__noinline int join_late(u32 flags)
{
	struct task_struct *t = bpf_get_current_task_btf();

	if (stays_out(t) || !below(BPF_CORE_READ(t, cgroups, dfl_cgrp)))
		return 0;
	join(t, flags);
	return 0;
}

/* followed returns the state of a followed thread. Of the whole machine, a thread is
 * followed from the first time that it is asked for, unless it is the recorder's or
 * the kernel's own. So is the calling thread of a process that came into the cgroup, where
 * not all threads could be followed then. */
static __always_inline struct task *followed(struct task_struct *t)
{
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);

	if (!whole_host) {
		if (st || !cgroup_id || !*(volatile u64 *)&shared.unjoined || t != bpf_get_current_task_btf())
			return st;
		join_late(TASK_JOINED);
		return bpf_task_storage_get(&tasks, t, 0, 0);
	}
	if (st)
		return st->flags & TASK_EXCLUDED ? 0 : st;
	if (stays_out(t))
		return 0;
	return join(t, TASK_JOINED);
}

/* join_call takes up, at its return, a call whose entry was not seen. It began no
 * later than what st->enter says. */
static __always_inline void join_call(struct task *st, struct pt_regs *regs)
{
	struct task_struct *t = bpf_get_current_task_btf();

	st->flags &= ~TASK_JOINED;
	read_args(st, regs);
#if defined(__TARGET_ARCH_arm64)
	st->nr = regs->syscallno;
#else
	st->nr = regs->orig_ax;
#endif
	st->tid = tid_of(t);
	st->cpu = t->se.sum_exec_runtime;
	st->delay = waited(t);
	st->file = 0;
	st->offered = ~0ull;
}

/* fork_unfollowed looks at a child of a process that is not followed: clone3 can put
 * it into the cgroup, and what the recorder makes is its own. */
static __always_inline void fork_unfollowed(struct task_struct *parent, struct task_struct *child)
{
	if (cgroup_id && below(BPF_CORE_READ(child, cgroups, dfl_cgrp)) && !stays_out(child)) {
		if (!join(child, 0))
			__sync_fetch_and_add(&shared.untracked, 1);
		__sync_fetch_and_add(&shared.entered, 1);
	}
	if (!whole_host)
		return;
	struct task *pst = bpf_task_storage_get(&tasks, parent, 0, 0);
	if (parent->tgid == recorder || (pst && pst->flags & TASK_EXCLUDED))
		join(child, TASK_EXCLUDED);
}

/* cgroup_attached follows a process that was moved into a cgroup, with all its threads or
 * alone. Interrupts are off here, so that memory for many threads cannot be had at once. Those left out,
 * and all but the first without an iterator over threads, are followed at their next call. */
static __always_inline int cgroup_attached(struct cgroup *dst, struct task_struct *leader, bool threadgroup)
{
	struct bpf_iter_task it;
	struct task_struct *t;
	bool late = threadgroup && !iterates_tasks;

	if (!below(dst) || stays_out(leader))
		return 0;
	if (iterates_tasks) {
		bpf_iter_task_new(&it, leader, BPF_TASK_ITER_PROC_THREADS);
		while ((t = bpf_iter_task_next(&it))) {
			if ((threadgroup || t == leader) && !bpf_task_storage_get(&tasks, t, 0, 0) && !join(t, TASK_JOINED))
				late = true;
		}
		bpf_iter_task_destroy(&it);
	} else if (!bpf_task_storage_get(&tasks, leader, 0, 0) && !join(leader, TASK_JOINED)) {
		late = true;
	}
	if (late)
		__sync_fetch_and_add(&shared.unjoined, 1);
	__sync_fetch_and_add(&shared.entered, 1);
	return 0;
}

/* Threads that the recorder wants followed where it has no descriptor for them (PIDFD_THREAD). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, struct task);
} listed SEC(".maps");

/* follow_if_listed follows a thread that the recorder listed. */
static __always_inline int follow_if_listed(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;

	if (!t || t->exit_state)
		return 0;
	u32 tid = tid_of(t);
	struct task *init = bpf_map_lookup_elem(&listed, &tid);
	if (!init || bpf_task_storage_get(&tasks, t, 0, 0))
		return 0;
	joined(t);
	bpf_task_storage_get(&tasks, t, init, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}

/* count_thread counts a thread if it is followed. */
static __always_inline int count_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;

	if (!t || t->exit_state)
		return 0;
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);
	if (st && !(st->flags & TASK_EXCLUDED))
		__sync_fetch_and_add(&shared.followed, 1);
	return 0;
}
