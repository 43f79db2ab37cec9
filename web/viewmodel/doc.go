// SPDX-License-Identifier: Apache-2.0

// Package viewmodel prepares recordings for their picture: lanes for threads, rows of lanes in
// the tree of processes, what is on them in any window of time at any grain, arrows for
// causes, and all that is known of one event.
//
//	tapes ──Open──▶ Scene ──Window──▶ marks of rows, arrows
//	                      ──Event───▶ fields, content, causes
//	                      ──Similar─▶ events with the same or similar content
//
// The index of a tape's lanes (package spanindex) is made in one pass, and kept in the tape
// where that can be written, so that a tape opens at once the next time. Arrows need the
// order of all events (package causal/happens), which takes memory of some tens of bytes an
// event; they come when Order was called.
//
// All answers are bounded: by the columns and rows that were asked for, and by constants
// that are named. Everything in a tape is hostile; nothing here is escaped, that is for
// who shows it.
//
// The package draws nothing and knows no network.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package viewmodel
