// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The record of where a process runs and with what, once it has executed a program. */
#pragma once

#include "argv.h"

/* How much of the environment is copied; the recorder drops the values unless they are wanted. */
const volatile bool copies_env = false;

enum { PROCESS_CHANGED = 2 }; /* flag: the process has executed no program since its last record */

/* Pieces of the record (event/facts, facts.go). */
enum { PROCESS_ENV = 1, PROCESS_KERNEL = 3, PROCESS_CGROUP = 4, PROCESS_EXE = 5 };

#define PROCESS_GROUPS 32
struct process_facts {
	u32 uid[4], gid[4]; /* real, effective, saved, of file-system access */
	u64 caps;           /* effective */
	u32 namespaces[7];  /* cgroup, ipc, mnt, net, pid, user, uts */
	u32 ngroups, groups[PROCESS_GROUPS];
};
_Static_assert(sizeof(struct process_facts) == 200, "process_facts");

static __always_inline void put_users(struct process_facts *f, const struct cred *c)
{
	struct group_info *g = BPF_CORE_READ(c, group_info);

	f->uid[0] = BPF_CORE_READ(c, uid.val);
	f->uid[1] = BPF_CORE_READ(c, euid.val);
	f->uid[2] = BPF_CORE_READ(c, suid.val);
	f->uid[3] = BPF_CORE_READ(c, fsuid.val);
	f->gid[0] = BPF_CORE_READ(c, gid.val);
	f->gid[1] = BPF_CORE_READ(c, egid.val);
	f->gid[2] = BPF_CORE_READ(c, sgid.val);
	f->gid[3] = BPF_CORE_READ(c, fsgid.val);
	bpf_probe_read_kernel(&f->caps, sizeof(f->caps), (void *)c + bpf_core_field_offset(struct cred, cap_effective));
	f->ngroups = BPF_CORE_READ(g, ngroups);
	bpf_probe_read_kernel(f->groups, sizeof(f->groups), (void *)g + bpf_core_field_offset(struct group_info, gid));
	f->namespaces[5] = BPF_CORE_READ(c, user_ns, ns.inum);
}

static __always_inline void put_namespaces(struct process_facts *f, struct task_struct *t)
{
	struct nsproxy *n = BPF_CORE_READ(t, nsproxy);
	struct pid *p = BPF_CORE_READ(t, thread_pid);
	u32 level = BPF_CORE_READ(p, level);
	struct upid *own = (void *)p + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid);

	f->namespaces[0] = BPF_CORE_READ(n, cgroup_ns, ns.inum);
	f->namespaces[1] = BPF_CORE_READ(n, ipc_ns, ns.inum);
	f->namespaces[2] = BPF_CORE_READ(n, mnt_ns, ns.inum);
	f->namespaces[3] = BPF_CORE_READ(n, net_ns, ns.inum);
	f->namespaces[4] = BPF_CORE_READ(own, ns, ns.inum);
	f->namespaces[6] = BPF_CORE_READ(n, uts_ns, ns.inum);
}

/* Control groups are directories in each other: from the process's own up to the root. */
#define CGROUP_DEPTH 64
#define CGROUP_NAME 256 /* NAME_MAX and a NUL */
struct cgroup_walk {
	struct work *w;
	struct kernfs_node *node;
};
static __always_inline struct kernfs_node *parent_of(struct kernfs_node *k)
{
	if (bpf_core_field_exists(struct kernfs_node, __parent))
		return BPF_CORE_READ(k, __parent);
	return (void *)BPF_CORE_READ((struct kernfs_node___before_6_15 *)k, parent);
}
static long put_cgroup_name(u32 i, struct cgroup_walk *c)
{
	struct work *w = c->w;
	struct kernfs_node *node = c->node, *parent = parent_of(node);
	u64 off = w->done;

	if (!parent) {
		w->failed = 0;
		return 1;
	}
	if (off > COMPOSE_MAX)
		return 1;
	long n = bpf_probe_read_kernel_str(w->buf + off, CGROUP_NAME, BPF_CORE_READ(node, name));
	if (n <= 0 || n > CGROUP_NAME)
		return 1;
	w->done = off + n;
	c->node = parent;
	return 0;
}

/* put_cgroup appends the names of the control group and those above it. */
static __always_inline void put_cgroup(struct work *w, struct task_struct *t)
{
	struct cgroup_walk c = {.w = w, .node = BPF_CORE_READ(t, cgroups, dfl_cgrp, kn)};
	u64 at = w->len + sizeof(struct piece);

	if (!c.node)
		return;
	w->done = at;
	w->failed = 1;
	each(CGROUP_DEPTH, put_cgroup_name, &c);
	finish_strings(w, PROCESS_CGROUP, w->failed ? PIECE_TRUNCATED : 0, (w->done - at) & 0xffff);
}

/* The file that the process executes: a script's is its interpreter. Its name in its directory follows. */
#define EXE_NAME 256 /* NAME_MAX and a NUL */
struct process_exe {
	u64 ino;
	u32 dev, zero;
};

static __always_inline void put_exe(struct work *w, struct task_struct *t)
{
	struct file *f = BPF_CORE_READ(t, mm, exe_file);
	u64 at = w->len + sizeof(struct piece);

	if (!f || at > COMPOSE_MAX)
		return;
	struct process_exe *e = (struct process_exe *)(w->buf + at);
	e->ino = BPF_CORE_READ(f, f_inode, i_ino);
	e->dev = BPF_CORE_READ(f, f_inode, i_sb, s_dev);
	e->zero = 0;
	long n = bpf_probe_read_kernel_str(w->buf + at + sizeof(*e), EXE_NAME, BPF_CORE_READ(f, f_path.dentry, d_name.name));
	if (n > 0 && n <= EXE_NAME)
		finish_strings(w, PROCESS_EXE, 0, sizeof(*e) + n);
}

/* compose_process starts the record of a thread's process in the work space. */
static __always_inline void compose_process(struct work *w, struct task_struct *t, u64 now)
{
	struct rec_data *r = (struct rec_data *)w->buf; /* laid out alike */
	struct process_facts *f = (struct process_facts *)(w->buf + sizeof(*r) + sizeof(struct piece));

	set_prefix(&r->p, REC_PROCESS, t);
	r->p.flags = PROCESS_CHANGED;
	r->enter = now;
	*(u64 *)&r->npieces = 0;
	w->len = sizeof(*r);
	w->npieces = 0;
	put_piece(w, PROCESS_KERNEL, 0, sizeof(*f), 0);
	__builtin_memset(f, 0, sizeof(*f));
	put_users(f, BPF_CORE_READ(t, cred));
	put_namespaces(f, t);
	w->len += sizeof(*f);
}

/* emit_process writes the record of the calling process, which has executed a program, or whose facts are others
 * now. */
__noinline int emit_process(struct work *w, struct task *st, u64 now)
{
	if (!w || !st)
		return 0;
	struct task_struct *t = self();

	compose_process(w, t, now);
	put_cgroup(w, t);
	if (st->flags & TASK_EXECUTED) {
		u64 start = t->mm->env_start, n = t->mm->env_end - start;

		((struct rec_data *)w->buf)->p.flags = 0;
		put_exe(w, t);
		if (copies_env && n && n <= ARGV_BIG && n <= ring_bytes / 4 && !write_bytes(w, st->shard, PROCESS_ENV, start, n))
			return 0;
		if (copies_env && n)
			put_piece(w, PROCESS_ENV, PIECE_MISSING, n, 0);
	}
	end_entry(w, st);
	return 0;
}
