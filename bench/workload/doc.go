// SPDX-License-Identifier: Apache-2.0

// Package workload holds the programs that the end-to-end tests and the
// benchmarks record: real ones (git, tar, make, sqlite3, …) driven by one script
// each, and small C programs for what no program does on demand.
//
// A script NAME.sh is called twice:
//
//	NAME.sh DIR prep   in an empty directory: lays the state before
//	NAME.sh DIR run    what is recorded: quiet, exits 0, writes only inside DIR
//
// The test is: prep; record run and keep the tree as A; prep elsewhere, or nothing
// at all, and replay there; the tree there is A. Running a script twice need not
// give the same tree twice: times, inodes and the order of threads differ.
//
// The package embeds the files, so that a test can use them from any directory.
// It knows nothing of recording or replaying.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package workload
