// SPDX-License-Identifier: Apache-2.0

// Package lake keeps the rows of many tapes in Apache Iceberg tables, in a directory or in an
// S3 bucket, where iotape and other programs ask them.
//
//	tape ──store──▶ rows of a day and host ──▶ Parquet files ─┐
//	                                           manifests ─────┼─▶ one commit of all tables
//	                                           metadata ──────┘
//	range of time, hosts, names ──plan──▶ files ──store──▶ rows
//
// A commit changes all tables at once, or none. It is a file with the next number in the
// catalogue of the lake (embedded), or a transaction of a REST catalogue. Who finds that
// another was faster makes the commit again, on top of the other's. So a tape is in the lake
// once, whoever adds it, how often, and wherever they were killed: its row in the table of
// summaries comes with all other rows of it, and is looked for in each try.
//
// Manifests and schemas are those of the module iceberg-go; the metadata of tables, a JSON
// file, is written here. The columns are those of packages store and store/catalogue.
//
// Files of a lake may come from anybody. They lead nowhere outside of the lake, and a
// statement reads nothing else.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package lake
