// SPDX-License-Identifier: Apache-2.0

// Package diff compares two tapes call by call. It finds the changes between two runs, or two
// versions, of a program.
//
//	A ─▶ threads, each a sequence of signatures ─┐
//	                                             ├─ matched by place and command ─▶ aligned ─▶ hunks
//	B ─▶ threads, each a sequence of signatures ─┘
//
// # Signatures
//
// Two calls are the same if they have the same operation, error, names, flags, sizes and
// offsets, and if their descriptors stand for the same names. Diff ignores what changes
// from run to run: addresses, numbers of processes and descriptors, times, inodes,
// the random part of temporary files' names. Names below the initial working directory are
// compared relative to it. With Options.Content, the bytes that a call moved are compared, too.
//
// The division of bytes into calls is random for a pipe or a socket, so consecutive calls on
// the same one count as one call of unknown size. The classes memory and wait, reads through
// mappings, waits for children and returns from signal handlers are compared only on request,
// as they depend on timing and on the content of the page cache.
//
// # Threads
//
// The children of a thread, in the order of their creation, are matched with those of its
// counterpart: first by program and arguments, then by program alone, then in order.
//
// # Bounds
//
// Diff needs 16 bytes of memory per event, and memory for distinct names and threads. Threads
// are aligned by Myers' algorithm in linear space. For a range that needs more than about two
// thousand edits the alignment is good, but perhaps not the shortest; ThreadDiff.Coarse is
// true then.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package diff
