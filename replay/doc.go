// SPDX-License-Identifier: Apache-2.0

// Package replay repeats what a tape recorded, inside one directory, and checks
// that it came out the same.
//
// Run replays, DryRun says what a replay would do, Restore only makes the files that it begins
// with. A program that calls Run calls execute.Stub first in its main function: the calls are
// made by a child process, which is the same program.
//
// # Packages
//
//	tape ─▶ initialtree ─▶ tree.Restore                        prepare
//	tape ─▶ eventsource ─▶ plan ─▶ schedule ─▶ execute         run
//	         linearize      order    hosts       verify ─▶ result
//	final tree ─▶ verify ─▶ result                             compare
//
// A package imports only packages that stand below it:
//
//	hosts         a team of processes on several hosts
//	replay        Options, Run, DryRun, Report: what users need
//	execute       the child process and its workers: makes the calls
//	schedule      queues of steps, waits, pace, look-ahead, the link to a team
//	verify        compares results, content and final trees
//	plan          events to tasks: what to do, with which files, after which tasks
//	initialtree   the files that a tape's events need to find
//	eventsource   events in an order that explains their results, with their threads' state
//	linearize     finds that order
//	order         which task has to wait for which
//	content       the bytes that are written, and those that should be read
//	asyncio       single requests to io_uring and AIO
//	result        the report and the log
//	options       the values of Options
//	effect        what calls do to names and bytes
//
// Package eventsource makes the threads, files and names of several hosts unique, and no
// package above it knows of hosts. A Task of package plan has all that is needed to do what
// an event did. Reads and writes of one buffer, which tapes consist of mostly, are a Step in a
// batch and no more. The tasks of a thread go into a queue, whose worker does them one after
// the other on a thread of its own. A task waits for queues to reach a position; no lock is on
// the way of a call. Planning goes on ahead of the calls, up to a number of bytes. What reads
// give is compared with hashes where these are known.
//
// # Order
//
// See package order and docs/replay.md. Every task waits for earlier ones only, in one
// order for all, so that no circle of waits can come about.
//
// # Confinement
//
// The calls run in a child process with mount and, for ordinary users, user
// namespaces of its own, whose root directory is the target, mounted nodev and
// nosuid. Nothing in a tape can name anything outside.
//
// # What is not repeated
//
// Processes, pipes, sockets and waits are modelled, not made; files that the
// kernel makes up (/proc, /sys, /dev) are not touched; what depends on the machine
// (a full disk, another file system, an interrupting signal) is not provoked.
// docs/ops.md has the list by operation. Inode and device numbers, times, and the
// sizes of directories cannot be reproduced and are not compared.
//
// The package knows nothing of capture or sealing.
//
// The API of this package is stable; see docs/library.md.
package replay
