// SPDX-License-Identifier: Apache-2.0

// Package dxt imports what darshan-dxt-parser prints of a Darshan log: the reads and
// writes that Darshan's extended tracing (DXT) kept, by file and rank of an MPI job.
//
//	rank N       process N+1, named "rank N", on the host that the file names
//	segment      pread64 or pwrite64 of as many bytes as were moved
//	file         open by each rank that used it, since the job's start
//
// Segments of MPI-IO are calls of the layer above: those of files of which the text
// has POSIX segments too are counted and not imported, as they would count twice.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package dxt
