// SPDX-License-Identifier: Apache-2.0

// Package linearize puts the events of a tape into an order that explains their results.
//
// A tape holds events in the order of their returns. Where calls of two threads
// overlapped, that need not be the order in which they took effect: an open that
// returned after an unlink of the same name may have come before it.
//
//	tape ─▶ Stage ─▶ planner
//
// The order that a Stage gives
//
//   - respects real time: a call that had returned when another was made comes before
//     it, and so do the calls of one thread;
//   - explains what the calls returned, if some such order does: a small model of the files
//     that applies the calls in this order gives the errno, sizes, counts and identities
//     that were recorded;
//   - is the tape's otherwise. Events move to an earlier place only, and only past
//     events that they overlap with.
//
// What no order explains is reported as Unexplained.
//
// # How
//
// Events are processed in windows. Calls race for a piece of state (a cell) if they
// overlap, access the cell, and one of them changes it. The calls of a window that access
// raced cells form components. For each component the orders that real time allows are
// searched depth first, beginning with the tape's. Orders of different components can be
// combined freely (locality: Herlihy and Wing, Linearizability, TOPLAS 1990). All other
// calls keep their places.
//
// The model has names (absent, or which file), the names in directories, symbolic links,
// sizes, link counts, permissions, extended attributes, file positions and locks, as far
// as the trace reports them; an unknown value may be anything until a call reports it.
// Content is compared where reads and writes of the same bytes overlapped: a read returns
// what was written last. A listing is compared with the names that calls used, the last
// 256 of its directory: listed names existed and, if the listing was complete, no others
// did. The size that a capture found when a call returned is an observation of its own
// after the call. Times are not modelled.
//
// For locks of flock and fcntl the model has the owner of each range (lockTable). At first
// no lock is assumed to be held. A close may be the last of its open file, and the end of
// a process releases its locks a moment later: after these events a lock may be held or not.
//
// Some calls take effect in more than one step. An open with O_TRUNC and a link look their
// file up before they empty it, or make the name: where nothing else explains the results
// they are split (steps.go), and the stage returns an open without O_TRUNC and an
// ftruncate, or a link by another name of the file. An open with O_CREAT follows a link
// before it makes a file, stat looks a name up before the file's attributes, a long write
// makes the file longer page by page, and a link fails if its file has lost all names
// since: a call whose result shows such an intermediate state is Unexplained.
//
// # Bounds
//
// An event is returned when a quarter of a window has been read behind it. If its result
// contradicts the state, a call that took effect before and has not returned may explain
// it: as long as there is a thread without a later event in the window, the window grows,
// up to Options.MaxWindow events. A call that ends later keeps the place of its return.
// Searches have a budget, after which a result counts as unexplained. When the state has
// more than 131,072 names or files, it is reset.
//
// The package is pure: its input is events and, through Options.Content, the bytes that
// they moved.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package linearize
