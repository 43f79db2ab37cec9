// Package skeleton finds the tree of files that a tape's events need to find: its
// snapshots, and beyond them everything that a call found although nothing in the
// trace had made it, with what calls said of it and the content that was read before
// it was written.
//
// It reads a tape and makes nothing: a Skeleton is a manifest for package tree.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package skeleton
