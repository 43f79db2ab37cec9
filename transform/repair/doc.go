// SPDX-License-Identifier: Apache-2.0

// Package repair makes a sound tape of a damaged one: of one whose files were cut off,
// changed or lost.
//
//	events    block by block; a damaged one costs its own events
//	content   pack by pack; what is in a damaged one is missing
//	trees     whole, or not at all
//	manifest  made anew; what only it knew is lost with it
//
// Nothing is lost silently: a loss mark stands where events are gone, bytes that are gone
// are missing in their buffers, and the new manifest says that the tape is incomplete and
// why. The old tape is only read.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package repair
