// SPDX-License-Identifier: Apache-2.0

// Package flight keeps the recent past of a recording in memory and writes it out
// when asked: a flight recorder.
//
//	back end ─▶ trace.StreamWriter ─▶ Recorder ─▶ memory, of fixed size
//	                                     │ what falls out: seal.Follower (state only)
//	                                     └─▶ Dump: state, then the frames kept, as a stream
//
// A Recorder takes the place of the stream's file. Frames that are older, or more,
// than what is to be kept are applied to the state of processes and descriptors
// and forgotten. A dump is a stream of its own: it begins with that state as
// start records (working directories, open descriptors, threads and what they
// share), so that sealing it gives the same events as if all had been kept.
//
// # Memory
//
// Frames lie one behind the other in one ring of memory outside the Go heap, of
// the size that is to be kept and a little more. Their content is never copied
// again until a dump writes it.
//
// A frame is given back when all its events are applied. Events are applied in
// order, which may be some frames later; a record whose event was applied while
// its frame is still there is marked as discarded, so that a dump does not have it
// twice.
//
// # Dumps
//
// A dump is of one moment. It goes through the frames from the oldest on while the
// recording goes on behind it; a frame is not given back before it is written. If
// the recording needs that memory sooner, it waits, and the programs with it, as
// for any slow disk.
//
// # Control
//
// A running flight recorder listens on a socket in a directory that only its user
// can enter (Listen), where iotape dump finds it (Running).
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package flight
