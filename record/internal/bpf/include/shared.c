// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* The types that Go code shares with the programs, and the one program that is run before the others
 * are loaded. */
#include "vmlinux.h"
#include "record.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define PID_BITS 23 /* the kernel's numbers have 22 */

char _license[] SEC("license") = "Dual BSD/GPL";

const struct common *common_type __attribute__((unused));
const struct task *task_type __attribute__((unused));
const struct request_row *request_row_type __attribute__((unused));
const struct suffix *suffix_type __attribute__((unused));

/* own_number returns the number that the machine has for the process that runs it, with how deep its pid namespace is
 * above. */
SEC("raw_tp")
int own_number(void *ctx)
{
	struct task_struct *t = (void *)bpf_get_current_task();

	return BPF_CORE_READ(t, thread_pid, level) << PID_BITS | (u32)(bpf_get_current_pid_tgid() >> 32);
}
