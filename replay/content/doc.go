// SPDX-License-Identifier: Apache-2.0

// Package content has the bytes that a replay writes and those that it should read: which of
// a buffer's bytes a tape has, what is written in place of recorded bytes, and how reads are
// compared without taking their content out of the tape again.
//
// It knows nothing of calls and their order.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package content
