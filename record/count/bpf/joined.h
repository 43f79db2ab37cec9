// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What else is kept of a thread that is followed from now on, for follow.h: nothing. */
#pragma once

#include "state.h"

static __always_inline void joined(struct task_struct *t) {}
