// SPDX-License-Identifier: Apache-2.0

// Package store is SQL over tapes. It is the only importer of DuckDB, and it
// interprets no system calls beyond what a row of a table needs: package posix and
// the reports do that.
//
//	tape ──Index──▶ events.parquet     one row per event
//	                opens.parquet      one row per open file
//	                content.parquet    one row per piece of content: its place and hash
//	                processes.parquet  one row per process
//	                files.parquet      one row per file
//	                index.json         their hashes, written last
//	                      │
//	tapes ──Query───▶ views of these names ──▶ Rows ──Render──▶ table, CSV, JSON
//	      ──Export──▶                      ──▶ a Parquet file
//
// The Parquet files are derived from the tape and can be rebuilt from it at any
// time; nothing is ever read back from them into a tape. Their columns are in
// docs/query.md. The bytes of content stay in the tape: the view reads them when its
// column data is asked for.
//
// A query is the user's, its tapes may be a stranger's: Query runs a single SELECT
// in an engine that may open the Parquet files of the given tapes and nothing else,
// with limited memory. Export may also write the one file that it was given.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package store
