// SPDX-License-Identifier: Apache-2.0

// Package dataseries reads and writes DataSeries files, version DSv1: typed tables
// in compressed extents, the format of SNIA's trace repository and of Re-Animator
// (Arnold et al., "DataSeries: an efficient, flexible data format for structured
// serial data", HP Labs 2009).
//
//	file   = header(40) typeLibrary extent* index tail(28)
//	extent = header, fixed-size records, strings; each part compressed on its own
//
// It reads what the C++ library writes: both byte orders, all eight compressions,
// all packings (relative, scaled and unique fields, left-out nulls, both field
// orders and paddings). It writes what that library's tools accept, without bz2
// and LZO.
//
// Everything read is hostile: sizes are checked against what is there before
// memory is taken, every checksum is verified, damage is an error that wraps
// ErrDamaged. The package knows nothing of system calls; package dssyscall does.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package dataseries
