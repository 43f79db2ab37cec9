// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The numbers of processes and threads: those that they have in the recorder's pid namespace, by which the
 * recorder finds them in /proc and sends them signals. */
#pragma once

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

const volatile u32 pid_level = 0; /* how deep the recorder's namespace is; 0: that of the machine */
const volatile u32 pid_ns = 0;    /* its number (namespaces(7)) */

/* number_at returns the number of a process at a level of namespaces, if it has that many. */
static __always_inline u32 number_at(struct pid *p, u32 level, u32 ns)
{
	void *at = (void *)p + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid);
	struct pid_namespace *in = 0;
	u32 nr = 0;

	if (!p || BPF_CORE_READ(p, level) < level)
		return 0;
	bpf_probe_read_kernel(&nr, sizeof(nr), at + bpf_core_field_offset(struct upid, nr));
	if (!ns)
		return nr;
	bpf_probe_read_kernel(&in, sizeof(in), at + bpf_core_field_offset(struct upid, ns));
	return BPF_CORE_READ(in, ns.inum) == ns ? nr : 0;
}

/* number_in returns the number of a process in the recorder's namespace; 0 if it is not in it. */
static __always_inline u32 number_in(struct pid *p) { return number_at(p, pid_level, pid_level ? pid_ns : 0); }

/* thread_number returns the number of a thread, or of its process (PIDTYPE_TGID), in the recorder's namespace. (A
 * function of its own for its stack.) */
static __noinline u32 thread_number(struct task_struct *t, enum pid_type type)
{
	return number_in(type == PIDTYPE_PID ? BPF_CORE_READ(t, thread_pid) : BPF_CORE_READ(t, signal, pids[PIDTYPE_TGID]));
}

/* tid_of and tgid_of return the number of a thread, and of its process. */
static __always_inline u32 tid_of(struct task_struct *t)
{
	return pid_level ? thread_number(t, PIDTYPE_PID) : (u32)t->pid;
}
static __always_inline u32 tgid_of(struct task_struct *t)
{
	return pid_level ? thread_number(t, PIDTYPE_TGID) : (u32)t->tgid;
}

/* own_id returns both of the calling thread, as bpf_get_current_pid_tgid does. */
static __always_inline u64 own_id(void)
{
	struct task_struct *t;

	if (!pid_level)
		return bpf_get_current_pid_tgid();
	t = bpf_get_current_task_btf();
	return (u64)tgid_of(t) << 32 | tid_of(t);
}
