// SPDX-License-Identifier: Apache-2.0

// Package plan makes tasks of a tape's events: what a replay does for an event, with which
// open files and which content, and which other tasks have to be done before.
//
//	eventsource ─▶ Planner.Next ─▶ Task ─▶ Loader (content) ─▶ package schedule
//
// Plain reads and writes, which tapes consist of mostly, need no more than a Step; all other
// events need their Task. Everything about one thread of the recording has a slot; tasks of
// one slot are done in their order.
//
// A Planner and a Loader are used by one goroutine. A Handle and a LockOwner, which tasks
// share, are written by the task that opens them, before any that uses them.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package plan
