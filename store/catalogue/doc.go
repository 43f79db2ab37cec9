// SPDX-License-Identifier: Apache-2.0

// Package catalogue is a table of tapes: a row for each, with its summary (package
// analyze/report/suite), so that among many the few are found that are worth reading. DFSTrace
// had one for the traces of two years.
//
//	tape ──OfTape──▶ Row ──Add──▶ tapes/month=2026-11/day=22/host=db7/ID.parquet
//	                              tapes/month=2026-11/rows.parquet   (Compact)
//	filter ──Find──▶ SQL ──store──▶ rows
//
// The rows are plain Parquet, which other engines read (docs/catalogue.md has the columns).
// They are derived from tapes, and can be made again from them. Where a file lies is for
// people and for removing old ones; what a row says of day and host counts.
//
// A catalogue may be read while it is written. Rows appear and go whole; compaction puts
// one directory in the place of another.
//
// What tapes say is hostile: names become paths only by an encoding, lists have limits,
// and filters become statements with parameters.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package catalogue
