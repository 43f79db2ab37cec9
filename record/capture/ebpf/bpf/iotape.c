// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* iotape's programs: every system call of the followed threads, with its content,
 * into ring buffers, as records of the stream (trace/record.go).
 *
 * The programs interpret the operation table's rows (map "table"): adding a call needs no
 * change here. A thread that is not followed has no task storage and leaves at
 * once. What the programs do is in the headers; here is where they are attached. */
#include "record_call.h"
#include "block.h"
#include "prefilter.h"
#include "process.h"
#include "signal.h"
#include "uring.h"
#include "wake.h"

char _license[] SEC("license") = "GPL";

const volatile bool filters = true; /* else no row of the table ever leads to steps of a filter */

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long nr)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *st = followed(t);
	if (!st || released())
		return 0;
	st->flags = (st->flags & ~(TASK_COMPAT | TASK_EXEC_LATE | TASK_JOINED | TASK_ADDED)) | TASK_IN_CALL;
	read_args(st, regs);
	st->nr = nr;
	st->tid = tid_of(t);
	st->cpu = t->se.sum_exec_runtime;
	st->delay = waited(t);
	st->file = 0;
	struct spec *s = spec_of(st);
	if (!s)
		return 0;
	if (st->flags & TASK_FAULT)
		settle(st, s->flags & SPEC_NO_RETURN ? LAST | ENDS : 0);
	if (s->prefilter == ROW_DROP && prefilterable(st, s)) {
		st->flags &= ~TASK_IN_CALL;
		return 0;
	}
	if (mmap_mode && s->use && s->use <= USE_MSYNC)
		note_use(st, s);
	if (s->flags & SPEC_POSITION)
		note_position(st);
	if (s->flags & SPEC_OFFER)
		note_offer(st, s);
	bool ends = s->flags & SPEC_NO_RETURN;
	if ((st->flags & (TASK_IDENTIFIED | TASK_PENDING | TASK_HELD)) == TASK_IDENTIFIED && !ends && !(s->flags & SPEC_AT_ENTRY)) {
		st->enter = bpf_ktime_get_ns();
		return 0;
	}
	u64 now;
	struct work *w = begin(&now);
	if (!w)
		return 0;
	st->enter = now;
	if (!(st->flags & TASK_IDENTIFIED))
		emit_task(w, st, now);
	if (st->flags & TASK_PENDING)
		flush_pending(w, st);
	if (st->flags & TASK_HELD)
		unlist(st);
	if (s->flags & SPEC_ENTRY)
		record_entry(w, st, s);
	if (s->flags & SPEC_BEFORE)
		record_before(w, st, s);
	if (ends) {
		record_last(w, st, s, now);
		st->flags &= ~TASK_IN_CALL;
	}
	end();
	return 0;
}

/* call_returned is what is done when a call returns; requests: what is about requests, too. */
static __always_inline int call_returned(struct pt_regs *regs, long ret, bool requests)
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
	if (filters && s && s->prefilter >= ROW_STEPS && st->enter >= shared.prefiltered && prefilterable(st, s) && prefiltered(st, s->prefilter - ROW_STEPS, ret, first_fd(st, s))) {
		st->flags &= ~TASK_IN_CALL;
		return 0;
	}
	struct work *w = begin(&now);
	if (!s || !w)
		return 0;
	bool wait = s->queue && !failed(ret) && wants_requests();
	if (st->flags & TASK_EXEC_LATE && failed(ret))
		record_entry_again(w, st, s);
	if (requests && s->flags & (SPEC_AIO_SUBMIT | SPEC_AIO_REAP))
		request_calls(w, st, s, now, ret);
	record_call(w, st, s, now, ret);
	if (suffixes && s->flags & SPEC_FD_RESULT && !failed(ret))
		name_file(w, st, s, ret);
	if (s->flags & SPEC_IDENTITY && !failed(ret))
		emit_task(w, st, now);
	if (st->flags & TASK_EXECUTED || (s->facts && !failed(ret))) {
		emit_process(w, st, now);
		st->flags &= ~TASK_EXECUTED;
	}
	st->flags &= ~TASK_IN_CALL;
	if (!(st->flags & TASK_PENDING))
		pressure(w, st, wait);
	else if (hold(st))
		flush_pending(w, st);
	/* What this took of the thread's time between its calls is no computing of its own. */
	st->returned -= bpf_ktime_get_ns() - now;
	end();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	return call_returned(regs, ret, false);
}

/* This takes the place of on_sys_exit when there are requests. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit_requests, struct pt_regs *regs, long ret)
{
	return call_returned(regs, ret, true);
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
	st->start = MEMBER((struct file *)st->file, f_pos);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_block_issue, struct request___blk *rq)
{
	return block_issued(rq);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_block_complete, struct request___blk *rq, u32 status, u32 bytes)
{
	return block_done(rq, status, bytes);
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_page_added, struct folio *folio)
{
	return page_added(folio);
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
	r.child = tgid_of(child);
	r.child_tid = tid_of(child);
	if (child->mm == parent->mm)
		r.share |= SHARE_VM;
	if (child->fs == parent->fs)
		r.share |= SHARE_FS;
	if (child->files == parent->files)
		r.share |= SHARE_FILES;
	if (child->tgid == parent->tgid)
		r.share |= SHARE_THREAD;
	if (child->nsproxy->mnt_ns != parent->nsproxy->mnt_ns)
		r.share |= NEW_MOUNTS;
	put_small(w, pst->shard, &r, sizeof(r));
	end();
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *t, int old_pid, struct linux_binprm *bprm)
{
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);
	u64 now;
	if (st) {
		st->flags |= TASK_EXECUTED;
		mapped_exec(st);
	}
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
	if (!(st->flags & TASK_IDENTIFIED))
		emit_task(w, st, now);
	if (st->flags & TASK_HELD)
		unlist(st);
	struct spec *s = spec_of(st);
	if (s && st->flags & TASK_IN_CALL) {
		compose_call(w, st, s, now, 0, CALL_INTERRUPTED);
		put_delays(w, st);
		write_call(w, st, -1);
	}
	if (st->flags & TASK_PENDING)
		flush_pending(w, st);
	set_prefix(&r.p, REC_EXIT, t);
	r.time = now;
	r.status = t->exit_code;
	if (st->flags & TASK_IDENTIFIED)
		put_small(w, st->shard, &r, sizeof(r));
	else
		lose(st->shard);
	bpf_task_storage_delete(&tasks, t);
	mapped_exit(t, now);
	end();
	return 0;
}

/* What calls about requests do when they begin: attached after on_sys_enter. */
SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter_requests, struct pt_regs *regs, long nr)
{
	struct task *st = followed(bpf_get_current_task_btf());
	u64 now;
	if (!st || !(st->flags & TASK_IN_CALL) || released())
		return 0;
	struct spec *s = spec_of(st);
	if (!s || !(s->flags & (SPEC_AIO_SUBMIT | SPEC_AIO_END)))
		return 0;
	struct work *w = begin(&now);
	if (!w)
		return 0;
	if (s->flags & SPEC_AIO_SUBMIT)
		aio_enter(w, st);
	else /* the ring is gone when it returns */
		end_process(w, st->args[0], now);
	end();
	return 0;
}

/* What a thread leaves of requests is ended before the thread is: this is attached before
 * on_exit. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit_requests, struct task_struct *t)
{
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);
	u64 now;
	if (!st || st->flags & TASK_EXCLUDED || released())
		return 0;
	struct work *w = begin(&now);
	if (!w)
		return 0;
	end_thread(w, st, now);
	if (!BPF_CORE_READ(t, signal, live.counter))
		end_process(w, 0, now);
	end();
	return 0;
}

/* Signals (signal.h). */
SEC("tp_btf/signal_deliver")
int BPF_PROG(on_signal_deliver, int sig, struct kernel_siginfo *info, struct k_sigaction *action)
{
	return signal_taken(sig, info, action);
}

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal_generate, int sig, struct kernel_siginfo *info, struct task_struct *t, int group, int result)
{
	return signal_sent(sig, info, t, result);
}

/* Threads that are followed otherwise than from a command on (follow.h). */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup_attach, struct cgroup *dst, const char *path, struct task_struct *leader, bool threadgroup)
{
	return cgroup_attached(dst, leader, threadgroup);
}

/* A process that is followed is moved to another control group. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup_moved, struct cgroup *dst, const char *path, struct task_struct *leader, bool threadgroup)
{
	struct task *st = bpf_task_storage_get(&tasks, leader, 0, 0);
	u64 now;
	if (!st || st->flags & TASK_EXCLUDED || released())
		return 0;
	*(volatile u64 *)&shared.moved = bpf_ktime_get_ns();
	if (!(st->flags & TASK_IDENTIFIED))
		return 0;
	struct work *w = begin(&now);
	if (!w)
		return 0;
	compose_process(w, leader, now);
	put_cgroup(w, leader);
	end_entry(w, st);
	end();
	return 0;
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

/* Files that are mapped into memory (mapped.h). The tracepoints of page faults are those of
 * x86. */
#if !defined(__TARGET_ARCH_arm64)
SEC("tp_btf/page_fault_user")
int BPF_PROG(on_page_fault_user, unsigned long addr, struct pt_regs *regs, unsigned long error)
{
	return on_fault(addr, error, 0);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_page_fault_kernel, unsigned long addr, struct pt_regs *regs, unsigned long error)
{
	return on_fault(addr, error, FAULT_IN_CALL);
}

SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(on_map_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	return pages_mapped(mapping, first, last);
}

SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(on_filemap_fault, struct address_space *mapping, unsigned long index)
{
	return page_missed();
}
#endif

/* Stores to files through shared mappings (stores.h). */
SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(on_dirty_folio, struct folio *folio, struct address_space *mapping)
{
	return folio_dirtied(folio, mapping);
}

SEC("tp_btf/writeback_single_inode_start")
int BPF_PROG(on_writeback, struct inode *inode)
{
	return inode_written_back(inode);
}

SEC("syscall")
int count_mappings(struct mapping_count *c)
{
	return writable_mappings(c);
}

/* io_uring (uring.h). */
SEC("tp_btf/io_uring_create")
int BPF_PROG(on_uring_create, int fd, void *ring)
{
	return uring_created(fd, ring);
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_uring_submit, struct io_kiocb *req)
{
	return uring_submitted(req);
}

SEC("tp_btf/io_uring_req_failed")
int BPF_PROG(on_uring_refused, const struct io_uring_sqe *sqe, struct io_kiocb *req)
{
	return uring_refused(sqe, req);
}

SEC("tp_btf/io_uring_link")
int BPF_PROG(on_uring_link, struct io_kiocb *req, struct io_kiocb *prev)
{
	return uring_linked(req, prev);
}

SEC("tp_btf/io_uring_fail_link")
int BPF_PROG(on_uring_fail_link, struct io_kiocb *req, struct io_kiocb *link)
{
	return uring_link_failed(link);
}

SEC("tp_btf/io_uring_complete")
int on_uring_complete(u64 *args) /* ring, req, cqe; before Linux 6.15: ring, req, user_data, res, flags */
{
	struct io_uring_cqe *cqe;

	if (!tells_cqe)
		return uring_completed(args[0], args[1], args[2], args[3], args[4]);
	cqe = (struct io_uring_cqe *)args[2];
	return uring_completed(args[0], args[1], cqe->user_data, cqe->res, cqe->flags);
}

SEC("tp_btf/io_uring_cqe_overflow")
int BPF_PROG(on_uring_overflow, void *queue, u64 user_data, s32 res, u32 cqe_flags)
{
	return uring_overflowed(queue, user_data, res, cqe_flags);
}

/* Wake-ups of followed threads: who made them go on (wake.h). */
SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq_entry) { return interrupt_begins(); }
SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_exit) { return interrupt_ends(); }
SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_entry) { return interrupt_begins(); }
SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit) { return interrupt_ends(); }
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_timer_entry) { return interrupt_begins(); }
SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(on_timer_exit) { return interrupt_ends(); }

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *t)
{
	return thread_woken(t);
}
