// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls that the filter refuses whatever else they are: a table of steps that user space
 * makes of it (predicate.Prefilter, prefilter.go) says so. */
#pragma once

#include "call.h"

enum { PREFILTER_LET = -1, PREFILTER_REFUSE = -2 };
enum { /* spec.prefilter */
	ROW_LET,   /* record it */
	ROW_DROP,
	ROW_STEPS, /* + the step to begin at */
};
enum {
	PREFILTER_PID, PREFILTER_TID, PREFILTER_PPID, PREFILTER_PGRP, PREFILTER_SID, PREFILTER_UID, PREFILTER_GID, PREFILTER_NR, PREFILTER_LATENCY,
	PREFILTER_RESULT, PREFILTER_ERRNO, PREFILTER_ARG0, PREFILTER_ARG1, PREFILTER_ARG2, PREFILTER_ARG3, PREFILTER_COMM, PREFILTER_SUFFIX, PREFILTER_PLACE,
};
enum { SUFFIXES = 16 };
const volatile struct suffix suffix[SUFFIXES] = {};
const volatile u32 suffixes = 0;
const volatile bool exact = false; /* a name that is not known ends in none of them */

/* What the names of open files end in, by the address of the struct file (the cache of
 * Tracefs, FAST 2004, section 3, but of open files: a name is that of the open, and one
 * inode can have several). The inode tells when an address is used again, and the hash of
 * its name in the directory when it was renamed. */
struct named {
	u64 inode, hash;
	u32 ends, zero;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct named);
} names SEC(".maps");

/* Which of the filter's tests of control groups, containers, pods and units hold, by the number of
 * the control group: the recorder fills it (places.go). */
const volatile bool places_matter = false;
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, u64);
} places SEC(".maps");

#define O_TMPFILE 020000000
#define NAME_MAX_BYTES 4096

static __always_inline u64 inode_of(struct file *f)
{
	return (u64)MEMBER(f, f_inode);
}

static __always_inline u64 name_hash(struct file *f)
{
	struct dentry *d = MEMBER(f, f_path.dentry);

	return MEMBER(d, d_name.hash_len);
}

/* first_fd is the first descriptor that the call has, -1 if there is none. */
static __always_inline s32 first_fd(struct task *st, struct spec *s)
{
	u32 arg = s->objects[0];

	return s->nobjects && arg < IOT_MAX_ARGS ? (s32)st->args[arg & 7] : -1;
}

/* name_tail reads the last 16 bytes of a name, with NULs before a shorter one. It returns
 * false if that says nothing, as of names that end in a slash. */
static __always_inline bool name_tail(struct work *w, u64 addr, bool user, u64 tail[2])
{
	__builtin_memset(w->buf, 0, 16);
	long n = user ? bpf_probe_read_user_str(w->buf + 16, NAME_MAX_BYTES, (void *)addr) :
			bpf_probe_read_kernel_str(w->buf + 16, NAME_MAX_BYTES, (void *)addr);

	n--; /* the NUL */
	if (n <= 0 || n >= NAME_MAX_BYTES - 1)
		return false;
	bpf_probe_read_kernel(tail, 16, w->buf + n);
	u8 last = tail[1] >> 56;
	return last && last != '/' && last != '.';
}

/* ends_in returns the suffixes that a name has. */
static __always_inline u32 ends_in(u64 tail[2])
{
	u32 ends = 0;

	for (u32 i = 0; i < SUFFIXES; i++) {
		if (i < suffixes && (tail[0] & suffix[i].mask[0]) == suffix[i].value[0] && (tail[1] & suffix[i].mask[1]) == suffix[i].value[1])
			ends |= 1u << i;
	}
	return ends;
}

/* name_file notes what the name ends in that a descriptor was just opened by. Names that
 * may stand for something else, as those below /proc and /dev do, are not noted. */
__noinline int name_file(struct work *w, struct task *st, struct spec *s, s64 ret)
{
	if (!w || !st || !s)
		return 0;
	struct file *f = file_of(ret);
	u64 key = (u64)f, tail[2] = {};
	struct named v = {};
	u32 name = s->opens & 0xff, flags = s->opens >> 8;
	bool known = false;

	if (!f)
		return 0;
	if (name && name <= IOT_MAX_ARGS && (!flags || flags > IOT_MAX_ARGS || !(st->args[flags - 1] & O_TMPFILE)))
		known = name_tail(w, st->args[name - 1], true, tail);
	u8 *b = w->buf + 16;
	bool magic = b[0] == '/' && ((b[1] == 'p' && b[2] == 'r' && b[3] == 'o' && b[4] == 'c') || (b[1] == 'd' && b[2] == 'e' && b[3] == 'v'));
	if (!known || magic) {
		if (file_of(first_fd(st, s)) != f) /* it is not the same file again, as of dup */
			bpf_map_delete_elem(&names, &key);
		return 0;
	}
	v.ends = ends_in(tail);
	if (!exact) { /* the filter fits what the kernel came to, too */
		struct dentry *d = MEMBER(f, f_path.dentry);

		v.hash = MEMBER(d, d_name.hash_len);
		if (name_tail(w, (u64)MEMBER(d, d_name.name), false, tail))
			v.ends |= ends_in(tail);
	}
	v.inode = inode_of(f);
	bpf_map_update_elem(&names, &key, &v, BPF_ANY);
	return 0;
}

/* ends_of returns what the name of a descriptor's file ends in; -1 if that is not known. */
static __always_inline s64 ends_of(s32 fd)
{
	struct file *f = file_of(fd);
	u64 key = (u64)f;

	if (!f)
		return -1;
	struct named *v = bpf_map_lookup_elem(&names, &key);
	if (!v || v->inode != inode_of(f) || (!exact && v->hash != name_hash(f)))
		return -1;
	return v->ends;
}

/* prefilterable says whether the call is like any other: nothing has to be made up for at
 * its record, no request of the thread may need it, and no file that programs store to
 * through mappings may be looked at because of it. */
static __always_inline bool prefilterable(struct task *st, struct spec *s)
{
	u32 not_now = TASK_PENDING | TASK_HELD | TASK_LATE | TASK_JOINED | TASK_EXEC_LATE | TASK_REQUESTS | TASK_COMPAT;

	return (st->flags & (TASK_IDENTIFIED | not_now)) == TASK_IDENTIFIED && !(s->use && shared.mapped);
}

/* places_of returns the tests that hold where the calling process is; -1 if that is not known, or
 * was another place when the call began. */
__noinline int places_of(struct task *st)
{
	if (!st || st->enter <= *(volatile u64 *)&shared.moved)
		return -1;
	u64 id = BPF_CORE_READ(self(), group_leader, cgroups, dfl_cgrp, kn, id);
	u64 *bits = bpf_map_lookup_elem(&places, &id);
	if (bits)
		return *bits & 0xffff;
	shared.unplaced++; /* not exact: the recorder looks whether it changes */
	return -1;
}

static __always_inline s64 prefilter_value(struct task *st, u32 field, s64 ret, u64 now)
{
	switch (field) {
	case PREFILTER_PID:
		return own_id() >> 32;
	case PREFILTER_TID:
		return st->tid;
	case PREFILTER_PPID:
		return st->ppid;
	case PREFILTER_PGRP:
		return st->pgid;
	case PREFILTER_SID:
		return st->sid;
	case PREFILTER_UID:
		return st->uid;
	case PREFILTER_GID:
		return st->gid;
	case PREFILTER_NR:
		return st->nr;
	case PREFILTER_LATENCY:
		return now - st->enter;
	case PREFILTER_RESULT:
		return failed(ret) ? -1 : ret;
	case PREFILTER_ERRNO:
		return failed(ret) ? -ret : 0;
	case PREFILTER_ARG0:
		return st->args[0];
	case PREFILTER_ARG1:
		return st->args[1];
	case PREFILTER_ARG2:
		return st->args[2];
	case PREFILTER_ARG3:
		return st->args[3];
	}
	return 0;
}

/* prefilter_step makes the test of step n and returns where to go on. */
static __always_inline short prefilter_step(struct task *st, u32 n, s64 ret, s32 fd, u64 now)
{
	struct prefilter_step *p = &shared.prefilter[n & (PREFILTER_STEPS - 1)];
	bool holds;

	if (p->field == PREFILTER_SUFFIX) {
		s64 ends = ends_of(fd);
		if (ends < 0 && !exact)
			return PREFILTER_LET;
		holds = ends >= 0 && ends >> (p->lo & (SUFFIXES - 1)) & 1;
	} else if (places_matter && p->field == PREFILTER_PLACE) {
		int held = places_of(st);
		if (held < 0)
			return PREFILTER_LET;
		holds = held >> (p->lo & 15) & 1;
	} else if (p->field == PREFILTER_COMM) {
		holds = st->comm[0] == (u64)p->lo && st->comm[1] == (u64)p->hi;
	} else {
		s64 v = prefilter_value(st, p->field, ret, now);
		holds = v >= p->lo && v <= p->hi;
	}
	return holds ? p->yes : p->no;
}

/* prefiltered walks the steps of a call that has returned, four in each round, since a
 * round costs as much as a step. It returns 1 if the filter refuses the call. */
__noinline int prefiltered(struct task *st, u32 begin, s64 ret, s32 fd)
{
	if (!st)
		return 0;
	u64 now = bpf_ktime_get_ns();
	u32 n = begin, i __attribute__((unused));

	repeat(i, PREFILTER_STEPS / 4, PREFILTER_STEPS / 4) {
		short next = prefilter_step(st, n, ret, fd, now);
		if (next >= 0)
			next = prefilter_step(st, next, ret, fd, now);
		if (next >= 0)
			next = prefilter_step(st, next, ret, fd, now);
		if (next >= 0)
			next = prefilter_step(st, next, ret, fd, now);
		if (next < 0)
			return next == PREFILTER_REFUSE;
		n = next;
	}
	return 0;
}
