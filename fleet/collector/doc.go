// SPDX-License-Identifier: Apache-2.0

// Package collector stores the batches of agents in staging, each one once, and knows the
// state of the fleet.
//
//	JetStream ──in order──▶ intake: by host and stream ──▶ commit: staging ──▶ position ──▶ purge
//
// The collector keeps a position in the broker's stream: everything before it is on the disk,
// and is purged from the broker only then. After a kill at any point, the collector reads
// again from the position, and drops the batches that are already in staging, by their
// numbers. A commit has these steps:
//
//  1. append to the streams, and to each a record of what was appended (commit.go)
//  2. sync the file system, once for all streams
//  3. write the hosts' files, which list finished streams; then the ends of these streams
//  4. write the position
//  5. purge the broker's stream before the position
//
// A batch that comes before its turn stays in the broker, after the position, until the missing
// batches have come. If the agent says that the broker had taken them, they are lost; the
// counts of the next batch tell how many events they had.
//
// A stream that cannot be written is held in the same way, while the others continue
// (waiting.go). Unreadable files and streams are quarantined at the start (load.go).
//
// Messages of a host that has a key must be signed with it: a sender chooses the subject of
// a broker's answers, so a subject alone proves nothing.
//
// One goroutine owns all state (Run); others pass functions to it. The package does not read
// payloads.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package collector
