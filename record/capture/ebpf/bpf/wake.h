// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Wake-ups of followed threads: who made them go on (programs of --wakeups). */
#pragma once

#include "call.h"
#include "ring.h"

/* Whether an interrupt runs on a CPU rather than its current thread. The kernel's own
 * count is out of reach; that of the handlers for devices and timers, and of what
 * they leave to be done at once, has all that wakes threads. */
static __always_inline struct cpu_slot *this_cpu(void)
{
	return &shared.cpus[bpf_get_smp_processor_id() & (MAX_CPUS - 1)];
}
static __always_inline int interrupt_begins(void)
{
	(*(volatile u64 *)&this_cpu()->interrupts)++;
	return 0;
}
static __always_inline int interrupt_ends(void)
{
	struct cpu_slot *s = this_cpu();
	if (*(volatile u64 *)&s->interrupts) /* else it began before the recording */
		(*(volatile u64 *)&s->interrupts)--;
	return 0;
}

/* The hook runs in the middle of anything, also of another hook on this CPU, whose
 * work space and mark it leaves alone. */
static __always_inline int thread_woken(struct task_struct *t)
{
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);
	struct rec_wake r = {};

	if (!st || st->flags & TASK_EXCLUDED || released())
		return 0;
	u32 shard = st->shard & (MAX_SHARDS - 1);
	void *rb = bpf_map_lookup_elem(&rings, &shard);
	if (!rb)
		return 0;
	struct cpu_slot *s = this_cpu();
	bool inside = *(volatile u64 *)&s->active;
	if (!inside)
		*(volatile u64 *)&s->active = 1;
	r.time = bpf_ktime_get_ns();
	if (!inside)
		*(volatile u64 *)&s->since = r.time;

	struct spec *row = st->flags & TASK_IN_CALL ? spec_of(st) : 0;
	r.p.type = REC_WAKE;
	r.p.op = row ? row->op : 0;
	r.p.pid = tgid_of(t);
	r.p.tid = tid_of(t);
	if (*(volatile u64 *)&s->interrupts) {
		r.p.flags = WAKE_INTERRUPT;
	} else {
		u64 id = own_id();
		r.pid = id >> 32;
		r.tid = id;
	}
	int err = output(rb, &r, sizeof(r), BPF_RB_NO_WAKEUP);
	if (err)
		lost_by(shard, err);
	if (!inside)
		*(volatile u64 *)&s->active = 0;
	return 0;
}
