// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The rings that records are written to, and the mark of a hook that is at work. */
#pragma once

#include "state.h"

const volatile u64 ring_bytes = 0; /* of one ring */
const volatile u64 inline_max = 0; /* content bytes of one record */

/* What the kernel has, too (state.h). */
const volatile bool copies_users = false;  /* bpf_probe_read_user_dynptr and its like of strings */
const volatile bool signals_tasks = false; /* bpf_send_signal_task */

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_SHARDS);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps");

/* begin returns the CPU's work space. Until end, the recorder takes no clock
 * reading as "all before this was seen" that is after the one that follows. */
static __always_inline struct work *begin(u64 *now)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_slot *s = &shared.cpus[cpu & (MAX_CPUS - 1)];
	*(volatile u64 *)&s->active = 1;
	s->interrupts = 0; /* threads alone come here: should the count have gone wrong */
	*now = bpf_ktime_get_ns();
	*(volatile u64 *)&s->since = *now;
	return bpf_map_lookup_elem(&works, &cpu);
}

static __always_inline struct work *this_work(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&works, &cpu);
}

/* at_work says whether a hook runs on this CPU already: a page fault is its own then. */
static __always_inline bool at_work(void)
{
	return *(volatile u64 *)&shared.cpus[bpf_get_smp_processor_id() & (MAX_CPUS - 1)].active;
}

static __always_inline void end(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	*(volatile u64 *)&shared.cpus[cpu & (MAX_CPUS - 1)].active = 0;
}

/* wakeup says whether a record that takes n bytes wakes the recorder: when it
 * brings a ring past a quarter. It looks by itself every few ms. */
static __always_inline u64 wakeup(struct work *w, u64 n)
{
	u64 quarter = ring_bytes / 4;
	return w->avail < quarter && w->avail + n >= quarter ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

enum {
	RING_FULL = -1,
	RING_REFUSED = -2, /* it had room */
};

/* output writes a record into a ring: 0, RING_FULL or RING_REFUSED. It tries again if the ring has room: since Linux
 * 6.16 its lock can be refused to who waits too long, as for the lock's holder on a processor of a virtual machine that
 * stands still. */
static __always_inline int output(void *rb, void *rec, u64 n, u64 flags)
{
	if (!bpf_ringbuf_output(rb, rec, n, flags))
		return 0;
	if (bpf_ringbuf_query(rb, BPF_RB_AVAIL_DATA) + n + 8 > ring_bytes)
		return RING_FULL;
	if (!bpf_ringbuf_output(rb, rec, n, flags))
		return 0;
	return bpf_ringbuf_query(rb, BPF_RB_AVAIL_DATA) + n + 8 > ring_bytes ? RING_FULL : RING_REFUSED;
}

/* lost_by counts a record that its ring did not take, by the error of output. */
static __noinline int lost_by(u32 shard, int err)
{
	if (err == RING_REFUSED)
		__sync_fetch_and_add(&shared.unwritten, 1);
	else
		lose(shard);
	return 0;
}

/* try_small writes a record that stands in memory as a whole. */
static __always_inline int try_small(struct work *w, u32 shard, void *rec, u64 n)
{
	void *rb = bpf_map_lookup_elem(&rings, &shard);
	if (!rb)
		return RING_FULL;
	w->avail = bpf_ringbuf_query(rb, BPF_RB_AVAIL_DATA);
	int err = output(rb, rec, n, wakeup(w, n));
	if (err)
		return err;
	w->avail += n + 8;
	return 0;
}

/* put_small does the same, or counts the record as lost. */
static __always_inline void put_small(struct work *w, u32 shard, void *rec, u64 n)
{
	int err = try_small(w, shard, rec, n);
	if (err)
		lost_by(shard, err);
}
