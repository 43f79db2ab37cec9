// SPDX-License-Identifier: Apache-2.0

// Package early does the work of the small processes that a recording starts from its own executable:
// the one that becomes the recorded command (Exec), and the two that watch over the recording (Guardian,
// Watchdog).
//
// The other packages of a large program take tens of milliseconds to be initialised. Go initialises
// packages in the order of their paths as far as imports allow, so one that imports little of the
// standard library comes early. This one therefore does its work while it is initialised, and such a
// process never comes to the others, or to main. It must import nothing else.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package early
