// SPDX-License-Identifier: Apache-2.0

// Package archive makes tapes of staged streams (package fleet/staging) and moves them to
// where they are kept for years: a directory, or a store that speaks S3.
//
//	staged streams ──Plan──▶ jobs ──seal──▶ tape ──Put, read back──▶ store
//	                                                       │
//	                      streams removed ◀── told ◀── stored
//
// # Assembly
//
// A tape is as long as its recording (DFSTrace §5.1). Streams are joined if the next one
// says that it goes on from the one before, without a description of its own. What did not
// arrive in between is declared, and the tape is incomplete. They are joined, too, if their
// frames go on: the next one has the same number, and its first frame the next sequence
// number. All else ends a tape: loss, reboot, another start of the agent, another level or
// configuration. The manifest says why the tape begins and ends where it does.
//
// # State
//
// Each tape on its way is a job, a directory in DATA/archive whose files say how far it is:
//
//	plan.json   what it is made of, written first
//	tape/       sealed
//	stored      in the store, and all of it was read back and compared
//	told        whoever keeps a catalogue knows of it
//
// Each appears whole, by a rename. So a run that was killed anywhere is gone on with by the
// next: what a job has is not done again, streams of a job are in no other, and they are
// removed last. Two runs at once are kept apart by a lock.
//
// A stored tape is complete when its manifest is there, which is put last and removed first.
//
// Names and numbers of streams come from hosts that may be hostile: paths are made of
// checked names alone. A stream that cannot be sealed is put aside, and never removed.
//
// The package does not know how a tape is sealed, nor of catalogues: it is told by
// functions.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package archive
