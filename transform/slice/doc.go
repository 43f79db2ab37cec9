// SPDX-License-Identifier: Apache-2.0

// Package slice cuts a tape: by time, by host, and by what events are about.
//
// # By time
//
//	events   0 ───────── first ━━━━━━━━━━━ last ─────────
//	             │                                slice = state, first … last
//	          posix.Model ─▶ State
//
// The events from the first to the last one that are wanted are copied as they are. In
// front of them stand the events of the state before the first: which threads there were
// and what they shared, where they were, what they had open and mapped (posix.Model.State).
// So names and descriptors resolve as in the whole, and a replay finds the files from
// what the slice's own calls say of them. Not part of the state are descriptors in
// messages on their way, files of io_urings, and chroots.
//
// # By what they are about
//
// A filter (package predicate) picks calls. With them come, of all calls, those that say what the picked
// ones mean, and nothing more: of every process that made a picked call, and of its
// ancestors, start and end, forks, exec, chdir, umask and the like; and whatever makes,
// duplicates, passes on, maps or ends an open file that a picked call used, or one of
// those did. Where a call used the position of a file, whatever else moved that comes too,
// but for plain reads and writes: an lseek with the flag event.Synthetic takes their place
// where a call that is kept would begin elsewhere without them.
//
// Calls that are left out may have made what the picked ones found: a replay of such a
// slice makes the files as the first picked calls found them.
//
// # Trees
//
// The snapshots of the recording's beginning are kept by slices that begin there and
// select nothing, the final state by those that are the whole of a host.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package slice
