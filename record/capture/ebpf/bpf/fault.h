// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The last page fault of a thread (mapped.h). */
#pragma once

#include "state.h"

enum { MMAP_OFF, MMAP_WRITTEN, MMAP_DATA, MMAP_FULL };
const volatile u32 mmap_mode = MMAP_OFF;

/* Pages whose content the recorder reads from the file when the call under way
 * returns: they were faulted in by the kernel, which cannot be held. Or, without ino,
 * what a fault mapped while the address space was being changed, so that nothing could
 * be looked up in it: the recorder finds out what addr is. */
struct late {
	u64 ino, off, len, addr, fault, time;
	u32 dev, flags;
};
#define MAX_LATE 8

/* What a thread's last fault was, and, of the call under way, what it unmaps. */
enum { FAULT_STORE = 1, FAULT_IN_CALL = 2, FAULT_PAGE = 4, FAULT_AROUND = 8 };
struct fault {
	u64 addr; /* 0: none, or it is recorded */
	u64 time;
	u64 lo, hi; /* file pages that were mapped (FAULT_AROUND) */
	u64 flags;
	u64 held; /* page that the thread was last held for; it will fault again */
	/* Areas of anonymous memory, found since mappings was as it is. */
	u64 anon[2], anon_bytes[2], anon_at, turn;
	/* The stored-to file whose mapping the call under way affects. */
	u64 use_ino, use_off, use_len;
	u32 use_dev, use_files;
	u64 lates;
	struct late late[MAX_LATE];
};
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fault);
} faults SEC(".maps");
