// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What else is kept of a thread that is followed from now on, for follow.h. */
#pragma once

#include "fault.h"

/* joined: page faults of the thread are followed, too. */
static __always_inline void joined(struct task_struct *t)
{
	if (mmap_mode >= MMAP_DATA)
		bpf_task_storage_get(&faults, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}
