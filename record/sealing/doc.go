// SPDX-License-Identifier: Apache-2.0

// Package sealing makes the tape NAME.tape of a recorded stream.
//
//	NAME.tape.partial/stream ──▶ Job.Run ──▶ NAME.tape.partial/tape ──rename──▶ NAME.tape
//	                     growing stream ──▶ Live ──▲
//
// A Job assembles the events of the stream (package seal), adds the snapshots that were
// taken before the recording and the state of the files after it, keeps what the
// recording's filter picks (package slice), and gives the tape its name when it is whole.
// A Live does the same while the stream is still being written. A Staged is a tape that is
// made of something else than a stream; it gets its name in the same way.
//
// A tape appears under its name only when it is complete. When sealing fails, the stream is
// as it was.
//
// The package knows nothing of how a stream is captured.
//
// The API of this package is stable; see docs/library.md.
package sealing
