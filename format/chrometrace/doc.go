// SPDX-License-Identifier: Apache-2.0

// Package chrometrace writes tapes in the Trace Event Format: the JSON of Chrome's
// about:tracing, which Perfetto, speedscope and many others read.
//
// Calls are complete events (X) of their thread, requests beside them are asynchronous
// ones (b, e), arrows are flow events (s, f), the rest are instants (i), counters (C)
// and metadata (M). Times are microseconds since the tape's first event, with three
// decimals: nanoseconds since 1970 would not be exact as JSON numbers. otherData says
// what wall-clock time they count from.
//
// The format is "Trace Event Format" by N. Duca and D. Sinclair (docs.google.com,
// document 1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package chrometrace
