// SPDX-License-Identifier: Apache-2.0

// Package ptrace is the capture back end for ordinary users: it follows a command, or
// processes that run already, with ptrace. A command stops only at the calls that a seccomp filter
// selects, what runs already stops at all. The recorder
// reads memory, descriptors and identity from the stopped threads. It keeps the
// contract of package capture and knows nothing of tapes.
//
//	filter ──RET_TRACE──▶ entry stop ──▶ call ──▶ exit stop ──▶ records ──▶ frames
//	           (clock, arguments, AtEntry memory)  (result, objects, memory)
//
// # What differs from the contract and from eBPF capture
//
//   - The calls listed by Untraced are not recorded unless all are asked for: frequent
//     calls without meaning for storage, which would otherwise cost two stops each.
//   - Nothing is ever dropped: a thread is stopped while its call is recorded, so
//     both overflow policies hold the program until the writer took the records.
//     Result.Stops stays 0.
//   - The filter cannot be taken from a running program, and its calls fail
//     without a tracer. When ctx is cancelled recording ends at once, but Run
//     returns only when the last program has ended, passing its calls through.
//     If the recorder is killed, so are the programs.
//   - For an ordinary user the filter needs no_new_privs, which the command and all
//     its children inherit: set-user-ID and set-group-ID programs and file
//     capabilities give them nothing more. It is not set for root.
//   - What runs already is stopped, all threads at once, and described while it stands still; so the
//     recording begins at one moment. It has no filter, and goes on when the recording ends or
//     the recorder is killed. A call that waits goes on; but one that has moved a part of its bytes when
//     the recording begins ends with that part, as after a signal, and on arm64 some end with EINTR.
//   - A child that is made with CLONE_UNTRACED is followed like others.
//   - The programs cannot trace each other (gdb, strace).
//   - A call began when its thread was let go on from the stop before it, and ended when
//     the stop behind it was taken from the kernel: a little earlier and later than it
//     ran, so that more calls seem to overlap. Of several threads, those that read, write,
//     seek or truncate one file by descriptor do so one after the other.
//   - Memory and descriptors of a program that an ordinary user may execute but
//     not read are not shown to the recorder: their pieces are missing, and
//     objects are left out.
//   - That an open made its file (O_CREAT in the object's flags) is not known.
//   - A call that returns to be restarted (-512 to -516, ERESTARTSYS and others)
//     is recorded with that result, and again when it is restarted.
//   - Stores through shared mappings are found by looking at the pages (stores.go); reads through
//     mappings are not recorded.
//   - Requests to io_uring and of Linux AIO are read where they are submitted (io_uring_enter, io_submit), and
//     their completions from the queue in the program's memory when a thread of the process stops next, or
//     after a tenth of a second. What a request was to write is read at its submission. Memory that it filled
//     is missing if the program had seen the completion before the recorder did, unless the file has the same
//     bytes: the program may have used the memory again. Requests to rings that the kernel polls
//     (IORING_SETUP_SQPOLL), to rings of before the recording, and of 32-bit programs are not recorded.
//   - The CPU time of a call is the thread's run time by /proc (schedstat), which
//     includes the cost of the stops; 0 where the kernel lacks it.
//   - If a thread that is not its process's first calls execve, the call keeps the
//     thread's number, a RecExit with status 0 ends that number after it, and the
//     process goes on under the first thread's.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package ptrace
