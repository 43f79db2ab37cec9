// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Signals that followed threads get.
 *
 * The kernel's tracepoint signal_deliver tells of those that a thread takes: all of a thread that is
 * traced (the recorder traces to hold threads). Of one that is not, the kernel forgets at once what
 * the program ignores, and makes a signal that ends the process a SIGKILL for each thread: of these, and
 * of a SIGKILL that somebody sends, signal_generate tells, which runs in whoever sends. */
#pragma once

#include "follow.h"
#include "ring.h"
#include "task.h"

#define SIGKILL 9
#define SIGNAL_GROUP_EXIT 4 /* linux/sched/signal.h */
enum { SIGNAL_SENT = 0, SIGNAL_NOT_TAKEN = 1 }; /* TRACE_SIGNAL_*, trace/events/signal.h */

static __always_inline u32 default_action(u32 sig)
{
	u64 bit = 1ull << ((sig - 1) & 63);

	if (bit & IOT_DEFAULT_IGNORED)
		return IOT_SIGNAL_IGNORED;
	if (bit & IOT_DEFAULT_DUMPS)
		return IOT_SIGNAL_DUMPS;
	return bit & IOT_DEFAULT_STOPS ? IOT_SIGNAL_STOPS : IOT_SIGNAL_TERMINATES;
}

/* compose_signal fills in a record. Where the kernel has no siginfo_t, it is one that it would make. */
static __always_inline void compose_signal(struct rec_signal *r, struct task_struct *t, u32 sig, void *info, u32 action)
{
	set_prefix(&r->p, REC_SIGNAL, t);
	r->p.flags = action;
	r->npieces = 1;
	r->piece.len = IOT_SIGINFO_BYTES;
	if ((u64)info <= 2 || bpf_probe_read_kernel(r->info, sizeof(r->info), info)) {
		__builtin_memset(r->info, 0, sizeof(r->info));
		if ((u64)info) /* SEND_SIG_PRIV */
			*(u32 *)(r->info + 8) = 0x80; /* SI_KERNEL */
	}
	*(u32 *)r->info = sig;
}

/* signal_taken is told that the current thread takes a signal. */
static __always_inline int signal_taken(u32 sig, void *info, void *action)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *st = followed(t);
	struct rec_signal r = {};
	u64 now, handler = 0;

	if (!st || released() || sig == SIGKILL)
		return 0;
	bpf_probe_read_kernel(&handler, sizeof(handler), action + bpf_core_field_offset(struct k_sigaction, sa) +
							    bpf_core_field_offset(struct sigaction, sa_handler));
	struct work *w = begin(&now);
	if (!w)
		return 0;
	if (!(st->flags & TASK_IDENTIFIED))
		emit_task(w, st, now);
	compose_signal(&r, t, sig, info, handler > 1 ? IOT_SIGNAL_HANDLED : handler ? IOT_SIGNAL_IGNORED : default_action(sig));
	r.time = now;
	put_small(w, st->shard, &r, sizeof(r));
	end();
	return 0;
}

/* signal_sent is told that a signal was sent to a thread, or its process. Like thread_woken it runs in the
 * middle of anything. */
static __always_inline int signal_sent(u32 sig, void *info, struct task_struct *t, int result)
{
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);
	struct rec_signal r = {};
	u32 action = IOT_SIGNAL_IGNORED;

	if (!st || st->flags & TASK_EXCLUDED || released())
		return 0;
	if (sig == SIGKILL) { /* no thread takes it: this alone knows who sent it */
		if (result != SIGNAL_SENT)
			return 0;
		action = IOT_SIGNAL_TERMINATES;
	} else if (t->ptrace) {
		return 0;
	} else if (BPF_CORE_READ(t, signal, flags) & SIGNAL_GROUP_EXIT) {
		if (result != SIGNAL_SENT || BPF_CORE_READ(t, signal, group_exit_code) != sig)
			return 0;
		action = IOT_SIGNAL_TERMINATES;
	} else if (result != SIGNAL_NOT_TAKEN) {
		return 0; /* signal_taken will tell */
	}
	u32 shard = st->shard & (MAX_SHARDS - 1);
	void *rb = bpf_map_lookup_elem(&rings, &shard);
	if (!rb)
		return 0;
	struct cpu_slot *s = &shared.cpus[bpf_get_smp_processor_id() & (MAX_CPUS - 1)];
	bool inside = *(volatile u64 *)&s->active;
	if (!inside)
		*(volatile u64 *)&s->active = 1;
	compose_signal(&r, t, sig, info, action);
	r.time = bpf_ktime_get_ns();
	if (!inside)
		*(volatile u64 *)&s->since = r.time;
	int err = output(rb, &r, sizeof(r), BPF_RB_NO_WAKEUP);
	if (err)
		lost_by(shard, err);
	if (!inside)
		*(volatile u64 *)&s->active = 0;
	return 0;
}
