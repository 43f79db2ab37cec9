// SPDX-License-Identifier: Apache-2.0

// Package schedule hands planned tasks to the workers that do them, and says when.
//
//	Planner ─▶ Dispatcher ─▶ Queue of batches, one for each slot ─▶ worker
//
// A Dispatcher plans ahead of the calls, up to a budget of memory (lookaheadBudget). The tasks
// of a slot go into its Queue, in batches; one worker takes them out. A task waits for other
// queues to reach a position: that is a counter of each queue, so that no lock is on the way of
// a call, and a worker that waits for long is parked (park.go). A Pacer makes a thread's calls
// at their times. A Link does the same for the queues of other members of a team.
//
// Every task waits for earlier ones only, in one order for all, so that no circle of waits
// can come about.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package schedule
