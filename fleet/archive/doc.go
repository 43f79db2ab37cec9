// SPDX-License-Identifier: Apache-2.0

// Package archive makes tapes of staged streams (package fleet/staging) and moves them to
// long-term storage: a directory, or an S3 store.
//
//	staged streams ──Plan──▶ jobs ──seal──▶ tape ──Put, read back──▶ store
//	                                                       │
//	                      streams removed ◀── told ◀── stored
//
// # Assembly
//
// A tape is as long as its recording (DFSTrace §5.1). Two streams are joined if the second
// says that it continues the first, without a description of its own. The tape then declares
// what did not arrive in between, and is incomplete. They are also joined if their frames
// follow each other: the stream number is the same, and the sequence number is the next one.
// Anything else ends a tape: loss, reboot, another start of the agent, another level or
// configuration. The manifest has the reasons for the beginning and the end of the tape.
//
// # State
//
// Each unfinished tape is a job, a directory in DATA/archive. Its files show its progress:
//
//	plan.json   the streams of the tape, written first
//	tape/       sealed
//	stored      the tape is in the store, and was read back and compared
//	told        the catalogue has the tape
//
// Each file appears complete, by a rename, so the next run can continue a run that was killed
// at any step. Finished steps are not repeated. A stream is in one job only, and is removed
// last. A lock prevents two runs at the same time.
//
// A stored tape is complete when it has its manifest, which is stored last and removed first.
//
// Names and numbers of streams come from hosts that may be hostile, so paths are made of
// checked names only. A stream that cannot be sealed is quarantined, and never removed.
//
// The package does not know catalogues: the caller passes functions.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package archive
