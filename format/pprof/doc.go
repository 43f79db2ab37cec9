// SPDX-License-Identifier: Apache-2.0

// Package pprof writes the stacks of a tape as a profile for pprof (github.com/google/pprof, proto/profile.proto):
// gzipped protocol buffers. Each sample has three values: calls, bytes and nanoseconds.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package pprof
