// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A call as its thread makes it: its row of the table, its arguments, and who makes it. */
#pragma once

#include "state.h"

#define TASK_COMPAT (1u << 31)

static __always_inline struct spec *spec_of(struct task *st)
{
	u32 nr = st->nr;
	if (nr >= UNKNOWN_NR)
		nr = UNKNOWN_NR;
	if (st->flags & TASK_COMPAT)
		nr += COMPAT_NR;
	return bpf_map_lookup_elem(&table, &nr);
}

static __always_inline void read_args(struct task *st, struct pt_regs *regs)
{
	struct task_struct *t = bpf_get_current_task_btf();
#if defined(__TARGET_ARCH_arm64)
	st->args[0] = regs->orig_x0;
	st->args[1] = regs->regs[1];
	st->args[2] = regs->regs[2];
	st->args[3] = regs->regs[3];
	st->args[4] = regs->regs[4];
	st->args[5] = regs->regs[5];
	if (t->thread_info.flags & 1 << 22) /* TIF_32BIT */
		st->flags |= TASK_COMPAT;
#else
	if (t->thread_info.status & 2) { /* TS_COMPAT */
		st->flags |= TASK_COMPAT;
		st->args[0] = (u32)regs->bx;
		st->args[1] = (u32)regs->cx;
		st->args[2] = (u32)regs->dx;
		st->args[3] = (u32)regs->si;
		st->args[4] = (u32)regs->di;
		st->args[5] = (u32)regs->bp;
		return;
	}
	st->args[0] = regs->di;
	st->args[1] = regs->si;
	st->args[2] = regs->dx;
	st->args[3] = regs->r10;
	st->args[4] = regs->r8;
	st->args[5] = regs->r9;
#endif
}

/* arg_of returns argument n, which a row of the table says. (By a mask, since old verifiers lose what a
 * comparison says of n; what stands behind the arguments may be read, too.) */
static __always_inline u64 arg_of(struct task *st, u32 n)
{
	return st->args[n & 7];
}
_Static_assert(__builtin_offsetof(struct task, args) + 8 * sizeof(u64) <= sizeof(struct task), "arg_of");

/* identify notes who the thread is. */
static __always_inline void identify(struct task *st, struct task_struct *t)
{
	st->ppid = tgid_of(t->real_parent);
	st->pgid = number_in(BPF_CORE_READ(t, signal, pids[PIDTYPE_PGID]));
	st->sid = number_in(BPF_CORE_READ(t, signal, pids[PIDTYPE_SID]));
	st->uid = t->cred->fsuid.val;
	st->gid = t->cred->fsgid.val;
	bpf_probe_read_kernel(st->comm, sizeof(st->comm), &t->comm);
}

/* file_of returns the calling thread's open file of a descriptor, 0 if there is none. */
static __always_inline struct file *file_of(s32 fd)
{
	struct task_struct *t = self();
	struct fdtable *fdt = t->files->fdt;

	if (fd < 0 || (u32)fd >= fdt->max_fds)
		return 0;
	return pointer_at(fdt->fd + (u32)fd);
}
