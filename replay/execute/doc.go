// SPDX-License-Identifier: Apache-2.0

// Package execute does the tasks of a replay: it makes the calls of a tape, in a child process
// that can see nothing but the target.
//
//	Run ──▶ child process (Stub) ──▶ schedule.Dispatcher ──▶ worker for each queue
//	                                                           │ call
//	        ◀── Answer ───────────── result.Report ◀── verify.Checker
//
// A program that calls Run, or RunPart for a team, calls Stub first in its main function: the
// child is the same program.
//
// # Confinement
//
// The child has mount and, for ordinary users, user namespaces of its own. Its root directory
// is the target, mounted nodev and nosuid. Nothing in a tape can name anything outside.
//
// # Workers
//
// A worker makes the calls of one queue on a thread of its own, because working directory,
// umask and identity belong to threads. What workers share is in environment; they reach
// neither the planner nor the dispatcher.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package execute
