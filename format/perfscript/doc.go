// SPDX-License-Identifier: Apache-2.0

// Package perfscript reads what perf script prints of the tracepoints of system calls, raw_syscalls:* and
// syscalls:sys_enter_* with syscalls:sys_exit_*: the format "perf-script".
//
//	line ─parse─▶ thread, time, event ─pair─▶ format.Call
//
// The package does not read perf.data: perf script -i prints it.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package perfscript
