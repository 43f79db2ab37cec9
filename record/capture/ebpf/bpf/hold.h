// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Holding a thread, and what is left for the recorder to do while it is held. */
#pragma once

#include "ring.h"

const volatile bool block = false; /* hold threads rather than lose records */
const volatile u64 hold_max = 0; /* ns that the recorder has to answer one that was told to stop; 0: without end */

#define SIGCHLD 17
#define SIGSTOP 19
#define SIGURG 23
#define SIGWINCH 28
#define SA_RESTART 0x10000000

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

/* hangs says whether the recorder has not answered for too long: it was stopped or frozen, or waits for something
 * itself. Until it answers nobody is held for it any more. */
static __always_inline bool hangs(void)
{
	u64 asked = *(volatile u64 *)&shared.asked;

	return hold_max && asked && bpf_ktime_get_ns() - asked > hold_max;
}

/* blocks says whether a thread may be held: only its tracer sees that it stopped, and
 * that is the recorder unless it could not or may no longer trace it. */
static __always_inline bool blocks(struct task_struct *t)
{
	return block && !released() && t->ptrace && t->parent->tgid == recorder && !hangs();
}

/* blocking says so of the calling thread. */
static __always_inline bool blocking(void) { return blocks(self()); }

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
__noinline int hold(struct task *st)
{
	if (!st)
		return 0;
	struct task_struct *t = self();
	struct held h = { .pid = tgid_of(t), .sig = hold_signal(t), .start = t->start_boottime };
	u32 tid = tid_of(t);

	if (bpf_map_update_elem(&holding, &tid, &h, BPF_ANY))
		return -1;
	st->flags |= TASK_HELD;
	if (bpf_send_signal_thread(h.sig))
		return -1;
	__sync_fetch_and_add(&shared.stops, 1);
	if (!shared.asked)
		shared.asked = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void unlist(struct task *st)
{
	u32 tid = own_id();

	st->flags &= ~TASK_HELD;
	bpf_map_delete_elem(&holding, &tid);
}

/* wants_requests says whether the programs for requests are not there yet, and asks for them. */
static __always_inline bool wants_requests(void)
{
	return __sync_val_compare_and_swap(&shared.request_programs, REQUESTS_LATER, REQUESTS_WANTED) != REQUESTS_READY;
}

/* pressure holds the thread if its ring is half full, or it has to wait for other reasons. */
static __always_inline void pressure(struct work *w, struct task *st, bool wait)
{
	if ((wait || w->avail > ring_bytes / 2) && blocking())
		hold(st);
}
