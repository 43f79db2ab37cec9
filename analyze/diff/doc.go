// SPDX-License-Identifier: Apache-2.0

// Package diff compares two tapes call by call: what has changed between two runs, or
// two versions, of a program.
//
//	A ─▶ threads, each a sequence of signatures ─┐
//	                                             ├─ matched by place and command ─▶ aligned ─▶ hunks
//	B ─▶ threads, each a sequence of signatures ─┘
//
// # Signatures
//
// Two calls are the same if they have the same operation, error, names, flags, sizes and
// offsets, and if their descriptors stand for the same names. What differs from run to
// run does not count: addresses, numbers of processes and descriptors, times, inodes,
// the random part of temporary files' names. Names below the directory that the recorded
// command was started in are compared relative to it. With Options.Content the bytes that
// a call moved count, too.
//
// How bytes arrive from a pipe or a socket, and in what pieces, is chance: calls that
// follow each other and move bytes through the same one are one call, of unknown size.
// Not compared unless asked for are the classes memory and wait, what was read through
// mappings, waits for children and returns from signal handlers: these depend on timing
// and on what was in memory.
//
// # Threads
//
// The children of a thread, in the order of their making, are matched with those of its
// counterpart: first by program and arguments, then by program alone, then in order.
//
// # Bounds
//
// Memory is 16 bytes per event and what distinct names and threads take. Threads are
// aligned by Myers' algorithm in linear space. Of a stretch that takes more than about
// two thousand edits the shortest alignment is not looked for, only a good one, and
// ThreadDiff.Coarse says so.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package diff
