// SPDX-License-Identifier: Apache-2.0

// Package suite computes the views of a tape that a storage engineer asks for: what ran
// and what the recording lacks, operations, cost, overlap, bandwidth, latency, sizes,
// access patterns, files, failures, redundant work, durability, conflicts, imbalance,
// phases, processes and provenance. It is the summary suite of DFSTrace and Darshan's
// report, for one tape.
//
//	events ─▶ seen (resolved once) ─▶ view ─▶ page.Section
//	                                  view ─▶ page.Section …
//
// All views share one pass over the events. Each has its definition in its file and in
// docs/reports.md. Memory is bounded by Options, not by the tape: what is beyond the
// limits is summed up under one name, and the section says so.
//
// The package reads a tape and nothing else: no clock, no machine.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package suite
