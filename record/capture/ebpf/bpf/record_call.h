// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The record of a call that has returned. */
#pragma once

#include "cached.h"
#include "ends.h"
#include "memory.h"
#include "slots.h"
#include "stores.h"

/* tell_thread says whether the reader knows the thread by now; else its record is lost. */
static __always_inline bool tell_thread(struct work *w, struct task *st, u64 now)
{
	if (!(st->flags & TASK_IDENTIFIED))
		emit_task(w, st, now);
	if (st->flags & TASK_IDENTIFIED)
		return true;
	lose(st->shard);
	return false;
}

/* record_last writes the record of a call that does not return, whose arguments are numbers. */
static __always_inline void record_last(struct work *w, struct task *st, struct spec *s, u64 now)
{
	if (!tell_thread(w, st, now))
		return;
	compose_call(w, st, s, now, 0, 0);
	put_delays(w, st);
	lose_late(st);
	struct rec_call *r = (struct rec_call *)w->buf;
	r->npieces = w->npieces;
	r->nobjects = w->nobjects;
	put_small(w, st->shard & (MAX_SHARDS - 1), w->buf, bounded(w->len));
}

/* record_call composes and writes the record. */
__noinline int record_call(struct work *w, struct task *st, struct spec *s, u64 now, s64 ret)
{
	u32 i;

	if (!w || !st || !s)
		return 0;
	if (!tell_thread(w, st, now))
		return 0;
	compose_call(w, st, s, now, ret, missed(st, s, ret) ? CALL_MISSED : 0);
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
	if (w->nsockets)
		put_ends(w);
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
	if (mmap_mode && ((s->use && (s->use < USE_WRITE || shared.mapped)) || st->flags & TASK_LATE))
		use_mapped(w, st, s, ret);
	write_call(w, st, ret);
	return 0;
}

/* flush_pending writes the records of pending work that the recorder will not do, with the
 * content as missing: the thread was not held, or has ended. */
__noinline int flush_pending(struct work *w, struct task *st)
{
	if (!w || !st)
		return 0;
	struct pending_key k = {own_id(), 0};
	u32 i;

	st->flags &= ~TASK_PENDING;
	repeat(i, st->npending, 64) {
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
