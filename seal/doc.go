// SPDX-License-Identifier: Apache-2.0

// Package seal turns a stream into a tape: it joins what capture recorded of each
// call, puts the calls of all shards into one order, resolves descriptors and
// names through the posix model, stores content once, and takes the state that
// the recording left on disk.
//
//	frames ──▶ assembler ──────▶ resolver ─────▶ sink ─┬▶ tape      Seal
//	           records to        descriptors           ├▶ Follower  the state alone
//	           events, by        and names, by         └▶ viewer    Watch
//	           return time       posix.Model
//	             └─ content ─▶ store: chunks of the tape, at once, so that memory stays flat
//
// # Order
//
// Events stand in the order of their return times, forks before their child's
// first event. Two appends to one file, or two calls on one file position, that
// overlapped stand in the order of the offsets that the kernel gave them.
//
// Memory is bounded by the number of threads and by what one drain of the
// recorder's rings holds, not by the length of the stream. A torn or damaged
// stream is sealed up to its last good frame, and the tape says so.
//
// The package knows nothing of capture back ends, of SQL or of replay.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package seal
