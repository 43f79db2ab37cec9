// SPDX-License-Identifier: Apache-2.0

// Package running describes processes that run already as the records that a
// recording of them begins with: their threads, what these share, working
// directories, masks, and what they have open, with names, flags and positions.
// What a new command inherits is the simple case of it.
//
// All of it comes from /proc while the processes go on, so each fact is true at a
// moment of its own. A back end that follows running processes therefore looks
// before it follows a thread and once more when it does: what changed in between is
// in the second look, and what changes later is in the calls (State).
//
// The package follows nothing and stops nothing. A process that ends or that may
// not be looked at has no records, or fewer.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package running
