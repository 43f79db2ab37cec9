// SPDX-License-Identifier: Apache-2.0

// Package verify compares what a replay does with the recording: results and content of calls,
// listings of directories, and the final tree.
//
// A Checker has the differences of all workers: it counts them, and puts those down to an
// earlier one that follow from it, because they are on the same file, name or directory.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package verify
