// SPDX-License-Identifier: Apache-2.0

// Package flow follows data through processes, sockets and disks, on one host or many:
// who read or wrote the same bytes, in causal order, and where bytes changed on the way.
//
//	tapes ─▶ happens (order, streams) ─┐
//	tapes ─▶ contents, each once ──────┼─▶ Flow: Before, After, Path ─▶ Findings ─▶ Expect
//	         └▶ similar (origins, pairs) ┘
//
// What moves content is a Move: a side of an event, which writes to an Object (a file, a
// stream, a socket) or reads from it. Moves are numbered in causal order. One leads to
// another by
//
//   - transport: what was sent is received, by the bytes of the stream; what was written
//     to a file is read there, by offsets, until it is written over;
//   - content: what a process took in it gives out later, in whole, in part, or changed.
//     Where no call of the process shows where it has the bytes from (memory shared with
//     others), others that had them before are named, as such.
//
// Content is looked at once, however often it moves: equal content is one class.
// Relations are between classes: bytes of one that stand in the other, exactly, or an
// estimate of their resemblance where the recording kept signatures only. Time and
// memory are linear in moves and different content.
//
// The package reads tapes. It knows no command, page or picture (analyze/flow/show).
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package flow
