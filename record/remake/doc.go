// SPDX-License-Identifier: Apache-2.0

// Package remake makes tapes of tapes: it slices, merges, anonymises, reveals and repairs.
//
// The packages in transform/ have the transformations. Remake gives the new tape its name
// when it is whole (package sealing), with its Parquet files, and reports what came of it.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package remake
