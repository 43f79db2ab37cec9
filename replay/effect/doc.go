// SPDX-License-Identifier: Apache-2.0

// Package effect says what a recorded call did to files, and what it reported of them:
// the structures that it filled in, the names in a listing, where a copy inside the
// kernel began, which flags an open had. The other packages below replay read events
// through it.
//
// It is pure: its only input is an event.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package effect
