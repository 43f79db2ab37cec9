// SPDX-License-Identifier: Apache-2.0

// Package count counts the system calls of a command, of running processes or of the whole
// machine inside the kernel, instead of recording them.
//
//	thread ──sys_enter, sys_exit──▶ programs (bpf/count.c) ──▶ map in use ─┐ take turns,
//	                                                           other map ──┤ once an interval
//	                                         each(ReadOut) ◀── Table ◀─────┘
//
// The programs follow threads and know calls as those of recording do (record/internal/bpf).
// Nothing of a call is written down, nobody is traced with ptrace, and every call is in
// exactly one read-out.
//
// It needs what the back end of package record/capture/ebpf needs. The package does not show
// rates and raises no alarms: analyze/aggregate/meter takes Counting for that.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package count
