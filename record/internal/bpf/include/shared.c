// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* The types that Go code shares with the programs. There are no programs here: this is
 * compiled for its type information. */
#include "vmlinux.h"
#include "record.h"

const struct common *common_type __attribute__((unused));
const struct task *task_type __attribute__((unused));
const struct request_row *request_row_type __attribute__((unused));
const struct suffix *suffix_type __attribute__((unused));
