// SPDX-License-Identifier: Apache-2.0

// Package objectstore keeps files by keys in a directory or in an S3 bucket.
//
// A file appears completely or not at all. Create makes one only if there is none, which is
// what a commit by several writers needs. The keys of a bucket are in the environment, never
// arguments.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package objectstore
