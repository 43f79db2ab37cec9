// SPDX-License-Identifier: Apache-2.0

// Package initialtree finds the files that a tape's events need to find: the tape's
// snapshots, and everything else that a call found although nothing in the trace had
// made it, with the attributes that calls reported and the content that was read before
// it was written.
//
// The package reads a tape and makes nothing: a Tree is a manifest for package tree.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package initialtree
