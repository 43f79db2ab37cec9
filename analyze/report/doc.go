// SPDX-License-Identifier: Apache-2.0

// Package report sums up a trace: per operation how often, how many errors, how
// many bytes and how long; the files and the processes that moved most; and what
// the recording is missing.
//
//	iter of events ─▶ Collect ─▶ Stat ─▶ Text, JSON
//
// It is pure: it reads no files and no clock. Its memory is bounded by the number
// of operations, by Options.MaxFiles and by Options.MaxProcesses, not by the length
// of the trace.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package report
