// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* iotape's programs: every system call of the followed threads, with its content,
 * into ring buffers, as records of the stream (trace/record.go).
 *
 * The programs interpret the operation table's rows (map "table"): adding a call needs no
 * change here. A thread that is not followed has no task storage and leaves at
 * once. */
#include "emit.h"
#include "call.h"

char _license[] SEC("license") = "Dual BSD/GPL";

static __always_inline void set_prefix(struct prefix *p, u16 type, struct task_struct *t)
{
	p->type = type;
	p->op = 0;
	p->pid = t->tgid;
	p->tid = t->pid;
	p->flags = 0;
}

/* number_inside is what a process or thread is called in its own pid namespace; 0 if
 * that is the first of all. */
static __always_inline u32 number_inside(struct pid *p)
{
	u32 level = BPF_CORE_READ(p, level), nr = 0;

	if (level)
		bpf_probe_read_kernel(&nr, sizeof(nr), (void *)p + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid));
	return nr;
}

/* announce writes the thread's identity. If it cannot, the next call tries again
 * first, and is lost if it fails too. */
__noinline int announce(struct work *w, struct task *st, u64 now)
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
	r.nstid = number_inside(t->thread_pid);
	r.nspid = number_inside(BPF_CORE_READ(t, signal, pids[1]));
	st->flags &= ~TASK_ANNOUNCED;
	if (!try_small(w, st->shard, &r, sizeof(r)))
		st->flags |= TASK_ANNOUNCED;
	return 0;
}

/* pressure holds the thread if its ring is half full. */
static __always_inline void pressure(struct work *w, struct task *st)
{
	if (w->avail > ring_bytes / 2 && blocking())
		hold(st);
}

/* compose_call starts a RecCall in the work space. */
static __always_inline void compose_call(struct work *w, struct task *st, struct spec *s, u64 now, s64 ret, u32 flags)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct rec_call *r = (struct rec_call *)w->buf;
	u32 i;

	set_prefix(&r->p, REC_CALL, t);
	r->p.tid = st->tid;
	r->p.op = s->op;
	r->p.flags = flags | (st->flags & TASK_COMPAT ? CALL_COMPAT : 0);
	r->enter = st->enter;
	r->exit = now;
	r->cpu = st->cpu;
	r->ret = ret;
	for (i = 0; i < IOT_MAX_ARGS; i++)
		r->args[i] = st->args[i];
	r->nr = st->nr;
	r->zero = 0;
	w->len = sizeof(*r);
	w->npieces = w->nobjects = w->nbulk = w->failed = 0;
	w->pend.nparts = 0;
	w->adrift = w->kept = false;
}

/* put_delays says of a call of the thread, which compose_call has just started, how long
 * it waited for a processor. */
static __always_inline void put_delays(struct work *w, struct task *st)
{
	struct rec_call *r = (struct rec_call *)w->buf;
	struct delays *d = (struct delays *)(r + 1);

	if (!has_delays())
		return;
	u64 now = waited(bpf_get_current_task_btf());
	d->before = delay_between(st->returned, st->delay);
	d->within = delay_between(st->delay, now);
	st->returned = now;
	r->p.flags |= CALL_DELAYS;
	w->len += sizeof(*d);
}

/* moved records the content of a call that moved it inside the kernel. */
static __always_inline void moved(struct work *w, struct spec *s, s64 ret)
{
	u64 n = ret, keep = s->hold_keep;

	if (n > keep)
		put_piece(w, s->hold_arg, PIECE_OMITTED, n - keep, keep);
	else
		keep = n;
	if (keep && !add_part(w, s->hold_arg, PART_MOVED, 0, keep, 0, 0))
		put_piece(w, s->hold_arg, PIECE_MISSING, keep, 0);
}

int put_registered(struct work *w, struct task *st, s64 ret);
#include "stores.h"

static __always_inline int record_call(struct work *w, struct task *st, struct spec *s, u64 now, s64 ret)
{
	u32 i;

	if (!(st->flags & TASK_ANNOUNCED))
		announce(w, st, now);
	if (!(st->flags & TASK_ANNOUNCED)) {
		lose(st->shard);
		return 0;
	}
	compose_call(w, st, s, now, ret, 0);
	put_delays(w, st);
	for (i = 0; i < IOT_MAX_OBJS - 1; i++) {
		if (i >= s->nobjects)
			break;
		u32 a = s->objects[i];
		if (a < IOT_MAX_ARGS)
			put_object(w, st->args[a], a);
	}
	if (st->file)
		settle_position(w, st, ret);
	if (s->flags & SPEC_INNER && !failed(ret)) {
		for (i = 0; i < IOT_MAX_CAPS; i++) {
			if (i >= s->ncaps)
				break;
			put_inner(w, st, &s->caps[i], ret);
		}
	}
	if (!failed(ret) && (s->flags & SPEC_FD_RESULT ||
			     (s->flags & SPEC_FCNTL && (st->args[1] == 0 || st->args[1] == 1030))))
		put_object(w, ret, -1);
	for (i = 0; i < IOT_MAX_CAPS; i++) {
		if (i >= s->ncaps)
			break;
		struct cap *c = &s->caps[i];
		if (c->when != IOT_AT_ENTRY)
			put_capture(w, st, c, ret);
	}
	if (s->flags & SPEC_OFFER && !failed(ret))
		put_offer(w, st, s);
	if (s->flags & SPEC_SLOTS && !failed(ret))
		put_registered(w, st, ret);
	if (s->flags & SPEC_HOLD && ret > 0 && !failed(ret))
		moved(w, s, ret);
	if (mmap_mode && (s->use || st->flags & TASK_LATE))
		use_mapped(w, st, s, ret);
	write_call(w, st, ret);
	return 0;
}

/* orphan closes pending work that the recorder will not do: the thread was not
 * held, or has ended. */
__noinline int orphan(struct work *w, struct task *st)
{
	if (!w || !st)
		return 0;
	struct pending_key k = {bpf_get_current_pid_tgid(), 0};
	u32 i;

	st->flags &= ~TASK_PENDING;
	repeat(i, st->npending) {
		k.n = i;
		struct pending *p = bpf_map_lookup_elem(&pendings, &k);
		if (!p)
			break;
		finish_data(w, p, st->shard);
		bpf_map_delete_elem(&pendings, &k);
	}
	st->npending = 0;
	return 0;
}

#include "argv.h"
#include "screen.h"

/* joined: page faults of the thread are followed, too. */
static __always_inline void joined(struct task_struct *t)
{
	if (mmap_mode >= MMAP_DATA)
		bpf_task_storage_get(&faults, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

#include "follow.h"
#include "uring.h"
#include "wake.h"

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long nr)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *st = followed(t);
	if (!st || released())
		return 0;
	st->flags = (st->flags & ~(TASK_COMPAT | TASK_EXEC_LATE | TASK_JOINED)) | TASK_IN_CALL;
	read_args(st, regs);
	st->nr = nr;
	st->tid = t->pid;
	st->cpu = t->se.sum_exec_runtime;
	st->delay = waited(t);
	st->file = 0;
	struct spec *s = spec_of(st);
	if (!s)
		return 0;
	if (st->flags & TASK_FAULT)
		settle(st, s->flags & SPEC_NO_RETURN ? LAST | ENDS : 0);
	if (s->screen == ROW_REFUSE && screenable(st, s)) {
		st->flags &= ~TASK_IN_CALL;
		return 0;
	}
	if (mmap_mode && s->use)
		note_use(st, s);
	if (s->flags & SPEC_POSITION)
		note_position(st);
	if (s->flags & SPEC_OFFER)
		note_offer(st, s);
	bool ends = s->flags & SPEC_NO_RETURN;
	if ((st->flags & (TASK_ANNOUNCED | TASK_PENDING | TASK_HELD)) == TASK_ANNOUNCED && !ends && !(s->flags & SPEC_AT_ENTRY)) {
		st->enter = bpf_ktime_get_ns();
		return 0;
	}
	u64 now;
	struct work *w = begin(&now);
	if (!w)
		return 0;
	st->enter = now;
	if (!(st->flags & TASK_ANNOUNCED))
		announce(w, st, now);
	if (st->flags & TASK_PENDING)
		orphan(w, st);
	if (st->flags & TASK_HELD)
		unlist(st);
	if (s->flags & SPEC_ENTRY)
		record_entry(w, st, s);
	if (s->flags & SPEC_BEFORE)
		record_before(w, st, s);
	if (s->flags & SPEC_AIO_SUBMIT)
		aio_enter(w, st);
	if (s->flags & SPEC_AIO_END) /* the ring is gone when it returns */
		end_process(w, st->args[0], now);
	if (ends) {
		record_call(w, st, s, now, 0);
		st->flags &= ~TASK_IN_CALL;
	}
	end();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *st = followed(t);
	u64 now;
	if (!st || !(st->flags & (TASK_IN_CALL | TASK_JOINED)) || released())
		return 0;
	if (st->flags & TASK_FAULT)
		settle(st, 0);
	if (st->flags & TASK_JOINED)
		join_call(st, regs);
	struct spec *s = spec_of(st);
	if (s && s->screen >= ROW_STEPS && st->enter >= shared.screened && screenable(st, s) && screened(st, s->screen - ROW_STEPS, ret, first_fd(st, s))) {
		st->flags &= ~TASK_IN_CALL;
		return 0;
	}
	struct work *w = begin(&now);
	if (!s || !w)
		return 0;
	if (st->flags & TASK_EXEC_LATE && failed(ret))
		record_entry_again(w, st, s);
	if (s->flags & (SPEC_AIO_SUBMIT | SPEC_AIO_REAP))
		request_calls(w, st, s, now, ret);
	record_call(w, st, s, now, ret);
	if (suffixes && s->flags & SPEC_FD_RESULT && !failed(ret))
		name_file(w, st, s, ret);
	if (s->flags & SPEC_IDENTITY && !failed(ret))
		announce(w, st, now);
	st->flags &= ~TASK_IN_CALL;
	if (!(st->flags & TASK_PENDING))
		pressure(w, st);
	else if (hold(st))
		orphan(w, st);
	/* What this took of the thread's time between its calls is no computing of its own. */
	st->returned -= bpf_ktime_get_ns() - now;
	end();
	return 0;
}

/* A thread that waited for others to move a file's position has its turn now, and
 * the position is where its own call will begin. */
SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void *lock, int ret)
{
	struct task *st = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
	if (!st || !st->file || !(st->flags & TASK_IN_CALL))
		return 0;
	if ((u64)lock != st->file + bpf_core_field_offset(struct file, f_pos_lock))
		return 0;
	struct file *f = bpf_rdonly_cast((void *)st->file, bpf_core_type_id_kernel(struct file));
	st->start = f->f_pos;
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct task *pst = followed(parent);
	struct rec_fork r = {};
	u64 now;
	if (!pst) {
		fork_unfollowed(parent, child);
		return 0;
	}
	if (released())
		return 0;
	struct work *w = begin(&now);
	if (!w)
		return 0;
	struct task init = {};
	init.shard = (u32)child->pid & shard_mask;
	struct task *st = bpf_task_storage_get(&tasks, child, &init, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!st)
		__sync_fetch_and_add(&shared.untracked, 1);
	mapped_fork(parent, child);
	set_prefix(&r.p, REC_FORK, parent);
	r.time = now;
	r.child = child->tgid;
	r.child_tid = child->pid;
	if (child->mm == parent->mm)
		r.share |= SHARE_VM;
	if (child->fs == parent->fs)
		r.share |= SHARE_FS;
	if (child->files == parent->files)
		r.share |= SHARE_FILES;
	if (child->tgid == parent->tgid)
		r.share |= SHARE_THREAD;
	put_small(w, pst->shard, &r, sizeof(r));
	end();
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *t, int old_pid, struct linux_binprm *bprm)
{
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);
	u64 now;
	if (st)
		mapped_exec(st);
	if (!st || !(st->flags & TASK_EXEC_LATE))
		return 0;
	struct work *w = begin(&now);
	if (!w)
		return 0;
	record_entry_late(w, st, bprm);
	end();
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *t)
{
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);
	struct rec_exit r = {};
	u64 now;
	if (!st || st->flags & TASK_EXCLUDED || released())
		return 0;
	if (st->flags & TASK_FAULT)
		settle(st, LAST | ENDS);
	struct work *w = begin(&now);
	if (!w)
		return 0;
	if (!(st->flags & TASK_ANNOUNCED))
		announce(w, st, now);
	if (st->flags & TASK_HELD)
		unlist(st);
	struct spec *s = spec_of(st);
	if (s && st->flags & TASK_IN_CALL) {
		compose_call(w, st, s, now, 0, CALL_INTERRUPTED);
		put_delays(w, st);
		write_call(w, st, -1);
	}
	end_thread(w, st, now);
	if (!BPF_CORE_READ(t, signal, live.counter))
		end_process(w, 0, now);
	if (st->flags & TASK_PENDING)
		orphan(w, st);
	set_prefix(&r.p, REC_EXIT, t);
	r.time = now;
	r.status = t->exit_code;
	if (st->flags & TASK_ANNOUNCED)
		put_small(w, st->shard, &r, sizeof(r));
	else
		lose(st->shard);
	bpf_task_storage_delete(&tasks, t);
	mapped_exit(t, now);
	end();
	return 0;
}
