// SPDX-License-Identifier: Apache-2.0

// Package posix is the one model of what processes have open and where they
// are: descriptor tables, open file descriptions, working directories, umasks,
// and how fork, exec, dup, close and exit change them (POSIX.1-2017, 2.14 and
// the pages of the calls; Linux's clone(2) for what threads share).
//
// Sealing runs it over raw calls to resolve them; the library, the replayer and
// the reports run it again over sealed events where they need the state between
// events. Names that an event has stay as they are: when it was sealed more was known of
// symbolic links.
//
// The model is pure: it does no I/O, reads no clock and starts no goroutines. What is not
// in a trace it asks a FileSystem for, if it has one.
// It believes what the kernel said (results, objects) over what it expects, so a
// trace with gaps leaves it with gaps, never with an error.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package posix
