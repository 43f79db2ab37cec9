// SPDX-License-Identifier: Apache-2.0

// Package stracetext writes events for people and for other programs: as lines
// like those of strace(1), as one JSON object per line, and as CSV.
//
//	event.Event ─▶ Printer.Append      1234 0.000123 openat(AT_FDCWD, "a", O_RDONLY) = 3</d/a> <0.000012>
//	            ─▶ Printer.AppendJSON  {"seq":7,"op":"openat",…}
//	            ─▶ Printer.AppendCSV   7,0,1234,…
//
// What an argument is comes from the operation table, what the memory behind it holds
// from event/layout; the package writes both down. Few calls are special (special.go):
// clone, whose arguments have names, and those that wait, whose lines say behind the
// result what happened. The field names of JSON and CSV are documented in
// docs/print.md and only ever added to.
//
// The package reads no tapes: content comes through Options.Content.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package stracetext
