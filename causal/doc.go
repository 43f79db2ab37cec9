// SPDX-License-Identifier: Apache-2.0

// Package causal says which events must have come before which, whatever the clocks say
// (Lamport, CACM 21(7), 1978): what a tape proves.
//
//	events ──Add──▶ Builder ──Before──▶ the direct predecessors of each event
//
// Proved are: the order within a thread; that a thread begins after the call that made
// it; that a wait returns after the end of its child; that a woken thread goes on after
// what its waker did before; and that bytes are read after they were written, for pipes,
// pairs of sockets and connections whose names say both ends ("TCP:[a->b]"), if their
// beginning is in the tape. Where calls overlapped so that it is open which bytes were
// whose, nothing is said.
//
// An event may come before one that has a lower number: tapes are ordered by returns,
// and a reader can return before its writer does.
//
// # Annotations
//
// Annotate goes further for one run, whose clock is one, for a replay that behaves like
// the application (Mesnier et al., "//TRACE: Parallel Trace Replay with Approximate
// Causal Events", FAST 2007): to each event it attaches how long its thread computed and
// slept, and which events of other threads it waited for. Here the kernel's wake-ups
// count, which call they happened in, locks, and what threads did to names and bytes of
// files.
//
//	events ──Annotate──▶ Annotations ──Write──▶ tape ──Read──▶ Annotations ──Cursor──▶ replay
//	                          └──WriteText──▶ text ──ReadText──▶ checked ──┘
//
// Every wait is for an event with a smaller number, so that no stored annotations can
// dead-lock; ReadText refuses those that would, and names the circle.
//
// The package is pure: the same answer for the same trace. It does not solve, guess or
// compare content, and it makes no replay.
package causal
