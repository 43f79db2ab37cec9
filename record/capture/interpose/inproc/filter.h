// SPDX-License-Identifier: Apache-2.0
/* Calls that the filter refuses whatever else they are: the steps that the eBPF programs walk, too
 * (predicate.Prefilter; ../../../internal/bpf/include/prefilter.h). */
#pragma once

enum { PREFILTER_REFUSE = -2 };
enum { /* spec.prefilter */
	ROW_LET,   /* record it */
	ROW_DROP,
	ROW_STEPS, /* + the step to begin at */
};
enum {
	PREFILTER_PID, PREFILTER_TID, PREFILTER_PPID, PREFILTER_PGRP, PREFILTER_SID, PREFILTER_UID, PREFILTER_GID, PREFILTER_NR, PREFILTER_LATENCY,
	PREFILTER_RESULT, PREFILTER_ERRNO, PREFILTER_ARG0, PREFILTER_ARG1, PREFILTER_ARG2, PREFILTER_ARG3, PREFILTER_COMM,
};

/* asked returns the value of a field. */
static s64 asked(const struct slot *s, u32 field, u64 latency)
{
	switch (field) {
	case PREFILTER_PID:
		return s->pid;
	case PREFILTER_TID:
		return s->tid;
	case PREFILTER_PPID:
	case PREFILTER_PGRP:
	case PREFILTER_SID:
	case PREFILTER_UID:
	case PREFILTER_GID:
		return (s64)s->who[field - PREFILTER_PPID];
	case PREFILTER_NR:
		return (s64)s->nr;
	case PREFILTER_LATENCY:
		return (s64)latency;
	case PREFILTER_RESULT:
		return failed(s->result) ? -1 : s->result;
	case PREFILTER_ERRNO:
		return failed(s->result) ? -s->result : 0;
	case PREFILTER_ARG0:
	case PREFILTER_ARG1:
	case PREFILTER_ARG2:
	case PREFILTER_ARG3:
		return (s64)s->args[field - PREFILTER_ARG0];
	}
	return 0;
}

/* refused reports whether a filter refuses a call that has returned and took so many ns. row: spec.prefilter, or
 * the like. What it asks of names is not known here: user space makes steps of it that let the call through. */
static s32 refused(const struct slot *s, const struct prefilter_step *steps, u32 row, u64 latency)
{
	s32 n = (s32)row - ROW_STEPS;
	if (row < ROW_STEPS)
		return row == ROW_DROP;
	for (u32 i = 0; n >= 0 && n < PREFILTER_STEPS && i < PREFILTER_STEPS; i++) {
		const struct prefilter_step *p = &steps[n];
		s32 holds;
		if (p->field == PREFILTER_COMM) {
			holds = s->who[5] == (u64)p->lo && s->who[6] == (u64)p->hi;
		} else {
			s64 v = asked(s, p->field, latency);
			holds = v >= p->lo && v <= p->hi;
		}
		n = holds ? p->yes : p->no;
	}
	return n == PREFILTER_REFUSE;
}
