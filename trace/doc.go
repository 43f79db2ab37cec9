// SPDX-License-Identifier: Apache-2.0

// Package trace holds iotape's two containers: the stream, events in motion, and
// the tape, a trace at rest. It is the library's front door: Open a tape, range
// over its Events, read their Content.
//
// # Streams
//
// A stream is a sequence of frames, each with a checked header (frame.go). A
// frame of records holds what a capture recorded, uninterpreted, one record
// after the other (record.go). Package seal turns a stream into a tape.
//
//	stream = frame*            frame  = header(64) payload
//	payload = record*          record = word(8) body, padded to 8 bytes
//
// # Tapes
//
// A tape is a directory. manifest.json is written last, by rename: a directory
// without it is a tape whose sealing did not finish, and Salvage reads what there
// is of it.
//
//	NAME.tape/
//	  events             the events, in blocks by column   ─┐
//	  content            chunks of content, in packs        ├ sealed: their hashes
//	  snapshot, final    file trees, if taken               │ are in the manifest
//	  stream-head, …     other files of TapeWriter.Create  ─┘
//	  manifest.json      what is in it; ends in its own hash
//	  *.parquet          derived by package store, rebuildable
//	  index.json         hashes of the derived files; names the manifest's hash
//
// events and content share a frame work (blockfile.go): a head, self-describing
// checked blocks, an index and a trailer. The index can be rebuilt from the
// blocks' headers, so a crash at any byte costs what comes after the last whole
// block.
//
//	file   = head(16) block* index trailer(16)
//	block  = header(64) table payload
//
//	events block:  no table;  payload = zstd(column*)        up to 4096 events
//	content pack:  table = (BLAKE3-256, length)*
//	               payload = zstd(chunk*)                    about 1 MiB
//
//	Event.Bufs[i].Refs ──(chunk number, offset, length)──▶ pack ──▶ bytes
//
// Within a block of events each field is a column of its own (column.go); files,
// paths and buffers of events are flattened into columns of the levels below, their
// numbers being columns of events. Readers skip columns that they do not know.
//
// # Promises
//
//   - Everything read is treated as hostile: lengths and counts are checked before
//     use, memory is bounded by the limits in blockfile.go, encode.go and
//     tapewriter.go, damage is reported as ErrCorrupt or ErrTruncated, something
//     newer as ErrNewer, and nothing panics.
//   - Check finds every change of a single byte in a tape.
//   - A damaged block costs its own events or chunks, not those of others.
//   - A version that has been released stays readable.
//
// The exact layouts are in docs/format.md.
//
// The package does not capture, resolve or replay. Only TapeWriter keeps goroutines
// (for compression and writing), until Close or Abort.
package trace
