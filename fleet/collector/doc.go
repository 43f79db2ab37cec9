// SPDX-License-Identifier: Apache-2.0

// Package collector puts what agents send into staging, each batch once, and knows
// how the fleet is.
//
//	JetStream ──in order──▶ intake: by host and stream ──▶ commit: staging ──▶ position ──▶ purge
//
// The collector keeps its own place in the broker's stream: everything up to the
// position is on the disk, and only then does the broker forget it. After a kill at
// any point it reads again from the position, and drops by their numbers the batches
// that are in staging already. A commit is:
//
//  1. append to the streams, and to each a record of what was appended (commit.go)
//  2. sync the file system, once for all streams
//  3. write the hosts' files, in which finished streams are listed; then their ends
//  4. write the position
//  5. have the broker purge what is before it
//
// A batch that comes before its turn stays in the broker, and the position before
// it, until those that are missing have come, or the agent says that the broker had
// taken them: then they are lost, and how many events they had is known from the
// counts of the next.
//
// A stream that cannot be written is held in the same way, while the others go on
// (waiting.go). What cannot be read at the start is quarantined (load.go).
//
// What is of a host that has a key must be signed with it: a broker sends its answers
// where a sender says, so a subject alone proves nothing.
//
// One goroutine owns all state (Run); others hand it functions. Payloads are never
// looked into.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package collector
