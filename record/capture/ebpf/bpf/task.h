// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The record of who a thread is. */
#pragma once

#include "compose.h"

/* number_inside is what a process or thread is called in its own pid namespace; 0 if
 * that is the recorder's. */
static __always_inline u32 number_inside(struct pid *p)
{
	u32 level = BPF_CORE_READ(p, level);

	return level > pid_level ? number_at(p, level, 0) : 0;
}

/* emit_task writes the thread's identity. If it cannot, the next call tries again
 * first, and is lost if it fails too. */
__noinline int emit_task(struct work *w, struct task *st, u64 now)
{
	if (!w || !st)
		return 0;
	struct task_struct *t = self();
	struct rec_task r = {};

	set_prefix(&r.p, REC_TASK, t);
	r.time = now;
	identify(st, t);
	r.ppid = st->ppid;
	r.pgid = st->pgid;
	r.sid = st->sid;
	r.uid = st->uid;
	r.gid = st->gid;
	__builtin_memcpy(r.comm, st->comm, sizeof(r.comm));
	r.nstid = number_inside(BPF_CORE_READ(t, thread_pid));
	r.nspid = number_inside(BPF_CORE_READ(t, signal, pids[1]));
	st->flags &= ~TASK_IDENTIFIED;
	if (!try_small(w, st->shard, &r, sizeof(r)))
		st->flags |= TASK_IDENTIFIED;
	return 0;
}
