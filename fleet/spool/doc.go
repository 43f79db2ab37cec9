// SPDX-License-Identifier: Apache-2.0

// Package spool keeps what an agent has not sent yet in a bounded directory, in
// order, and what it has counted in a file that survives the agent.
//
//	DIR/000000000000002a.seg   items: u32 length, u32 CRC-32C, bytes; the first has number 0x2a
//	DIR/ledger                 counters, mapped into memory (ledger.go)
//
// Items are numbered from 1 in the order in which they were put in. Those that were
// sent are given back in that order; a segment goes when all of its items are. What
// an agent wrote is there when it is killed; when the machine goes down, what the
// kernel had not written is not, and a torn item ends the spool.
//
// A Spool is for one process: Open takes a lock. It starts no goroutines.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package spool
