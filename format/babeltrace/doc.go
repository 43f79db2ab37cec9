// SPDX-License-Identifier: Apache-2.0

// Package babeltrace reads what babeltrace2 prints of LTTng's kernel traces (CTF): the
// text of its sink.text.pretty, in all of its clock, delta, field and name variants but
// --names=none, and babeltrace 1's, which is the same.
//
//	[22:13:20.123456789] (+0.000001000) host syscall_entry_openat: { cpu_id = 0 },
//	{ vpid = 7, vtid = 7, procname = "sh" }, { dfd = -100, filename = "/x", … }
//
// Each syscall_entry_X is joined with the syscall_exit_X of its thread. Who that is say
// the contexts tid or vtid or, without them, the sched_switch events of the CPU. State
// dumps and forks say more about processes; other events are counted.
//
// LTTng does not record content: buffers are marked as left out. names.txt has what the
// kernel calls the arguments.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package babeltrace
