// SPDX-License-Identifier: Apache-2.0

// Package pipe carries a byte stream as numbered blocks that pass through layers:
// compression, checksums, encryption, queues, in any order. What comes out is a
// stream of its own that says what it is made of, in which every block can be judged
// alone, and whose end can be told from a cut.
//
//	bytes ─▶ Writer ─▶ block ─▶ layer ─▶ layer ─▶ ┌──────┬───────┬───────┬─ ─┬───────────┐ ─▶ sink
//	                                              │header│block 0│block 1│   │final block│
//	                                              └──────┴───────┴───────┴─ ─┴───────────┘
//
// The layers are in packages below (compress, checksum, encrypt; Async is here),
// package chain makes them of a text such as "async,zstd:3,checksum:@key", package sink
// has files and devices to write to, and package wire carries streams over connections.
//
// Promises: an error of a Writer or Reader is returned again by every later call. Only
// Close writes the final block, and only if there was no error. Memory is bounded by
// the block size and the lengths of the queues, also for hostile input. A Reader
// returns no byte of a block that a layer refused.
//
// The package does not know what the bytes are: nothing of events or traces.
// docs/pipes.md has the format.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package pipe
