// SPDX-License-Identifier: Apache-2.0

// Package perftrace reads what perf trace prints of system calls: the format "perf-trace".
//
//	line ─parseLine─▶ thread, time, call, fields by name ─▶ format.Call
//
// The package does not read perf.data: perf trace -i prints it.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package perftrace
