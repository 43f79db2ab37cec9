// SPDX-License-Identifier: Apache-2.0

// Package timeline tells a tape as trace viewers show it: tracks of threads in
// processes, slices on them, arrows between slices, marks and counters. The formats of
// viewers write what it says.
//
//	tape ──Walk──▶ Sink: Process, Track, Slice, Mark, Count
//
// Slices of a track do not overlap, but one can be within another: an access to mapped
// memory within the call for which the kernel made it. A request that is under way while
// its thread makes other calls goes to a lane of that thread, of which there are as many
// as there are requests at a time.
//
// An arrow is a number that two slices share. It leads from a fork to the first call of
// who was made, from the write to a pipe to the first read that returned bytes of it, and from
// the call that woke a thread to when that thread went on.
//
// What Walk holds grows with the threads, the open files and the pipes that are in use
// at a time, not with the number of events.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package timeline
