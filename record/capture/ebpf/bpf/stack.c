// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* The registers of threads that make calls, and a part of their stacks, for the recorder to follow
 * (stack.go). This is an object of its own: a recording without stacks does not load it. */
#include "state.h"
#include "call.h"

char _license[] SEC("license") = "GPL";

#define STACK_PAGE 4096
#define STACK_MAX (64 << 10) /* at most copied of a stack */
#define STACK_CALLS 512      /* numbers of calls */
#define STACK_REGS 34        /* of arm64, which has more */

#if defined(__TARGET_ARCH_arm64)
#define REGS_BYTES (33 * 8)
#define REG_SP 31
#else
#define REGS_BYTES (21 * 8)
#define REG_SP 19
#endif

/* When the stack of a call is taken. */
enum { STACK_NEVER, STACK_ENTRY, STACK_RETURN };

const volatile u64 stack_bytes = 0;           /* copied of a stack, a multiple of 8 */
const volatile u64 stack_every = 1;           /* of so many calls one has its stack taken */
const volatile u8 stack_when[STACK_CALLS] = {}; /* by number */
const volatile u64 stack_least[STACK_CALLS] = {}; /* ns that a call takes at least whose stack is taken at its return */

struct stack_head {
	u64 enter;
	u32 pid, tid;
	u64 bytes; /* of the stack, which follow */
	u64 regs[STACK_REGS];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} stacks SEC(".maps");

struct stack_work {
	struct stack_head head;
	u8 page[STACK_PAGE];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_work);
} stack_works SEC(".maps");

struct stack_counts {
	u64 calls, lost;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_counts);
} stack_counters SEC(".maps");

struct stack_copy {
	struct stack_work *w;
	struct bpf_dynptr *d;
	u64 at, most; /* address; bytes */
};

/* copy_page copies what is next of a stack, up to the end of a page. */
static long copy_page(u32 i, struct stack_copy *c)
{
	u64 done = c->w->head.bytes, addr = c->at + done;
	u64 n = STACK_PAGE - (addr & (STACK_PAGE - 1));

	if (n > c->most - done)
		n = c->most - done;
	if (done >= c->most || done >= STACK_MAX)
		return 1;
	asm volatile("" : "+r"(n));
	if (!n || n > STACK_PAGE || bpf_probe_read_user(c->w->page, n, (void *)addr))
		return 1;
	if (bpf_dynptr_write(c->d, sizeof(struct stack_head) + done, c->w->page, n, 0))
		return 1;
	c->w->head.bytes = done + n;
	return 0;
}

/* stack_size is how much of a stack there can be: a process's first thread began below its arguments. */
static __always_inline u64 stack_size(struct task_struct *t, u64 sp)
{
	u64 top = BPF_CORE_READ(t, mm, arg_start), n = stack_bytes;

	if (top > sp && top - sp < n)
		n = pad8(top - sp);
	return n;
}

static __always_inline int take_stack(struct task *st, struct task_struct *t, struct pt_regs *regs)
{
	struct bpf_dynptr d;
	u32 zero = 0;
	struct stack_work *w = bpf_map_lookup_elem(&stack_works, &zero);
	struct stack_counts *n = bpf_map_lookup_elem(&stack_counters, &zero);

	if (!w || !n)
		return 0;
	if (stack_every > 1 && __sync_fetch_and_add(&n->calls, 1) % stack_every)
		return 0;
	struct stack_head *h = &w->head;
	h->enter = st->enter;
	h->pid = tgid_of(t);
	h->tid = tid_of(t);
	h->bytes = 0;
	if (bpf_probe_read_kernel(h->regs, REGS_BYTES, regs))
		return 0;
	struct stack_copy c = {.w = w, .d = &d, .at = h->regs[REG_SP]};
	c.most = stack_size(t, c.at);
	if (bpf_ringbuf_reserve_dynptr(&stacks, sizeof(*h) + c.most, 0, &d)) {
		bpf_ringbuf_discard_dynptr(&d, 0);
		__sync_fetch_and_add(&n->lost, 1);
		return 0;
	}
	each(STACK_MAX / STACK_PAGE + 1, copy_page, &c);
	bpf_dynptr_write(&d, 0, h, sizeof(*h), 0);
	bpf_ringbuf_submit_dynptr(&d, BPF_RB_NO_WAKEUP);
	return 0;
}

/* calling returns the state of the calling thread, if it is in a call whose stack is taken at this time. */
static __always_inline struct task *calling(struct task_struct *t, u8 when)
{
	struct task *st = bpf_task_storage_get(&tasks, t, 0, 0);

	if (!st || st->flags & TASK_COMPAT || !(st->flags & TASK_IN_CALL))
		return 0;
	u32 nr = st->nr;
	if (nr >= STACK_CALLS || stack_when[nr] != when)
		return 0;
	return st;
}

/* This is attached after on_sys_enter. */
SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter_stack, struct pt_regs *regs, long nr)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *st = calling(t, STACK_ENTRY);

	return st ? take_stack(st, t, regs) : 0;
}

/* This is attached before on_sys_exit. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit_stack, struct pt_regs *regs, long ret)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *st = calling(t, STACK_RETURN);

	if (!st)
		return 0;
	u32 nr = st->nr;
	if (nr >= STACK_CALLS || bpf_ktime_get_ns() - st->enter < stack_least[nr])
		return 0;
	return take_stack(st, t, regs);
}
