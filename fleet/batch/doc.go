// SPDX-License-Identifier: Apache-2.0

// Package batch is what agents send: pieces of streams, numbered, counted and
// checked, and the few words that agents and collectors exchange besides.
//
//	batch, little-endian:
//	 0 u32 magic "iotp"          32 u64 lost: events that the agent has declared
//	 4 u16 version                      lost in this stream so far
//	 6 u8  kind                  40 u32 length of the data
//	 7 u8  flags                 44 u32 length of the stream's name
//	 8 u64 number, from 1        48 name, data
//	16 u64 events before it      .. u32 CRC-32C of all before
//	24 u64 events in it
//
// A batch of kind About is a stream's first, one of kind End its last; the data of
// these is JSON (staging.About, staging.End). That of the others is whole frames, but
// where a frame is larger than a batch. Who carries batches does not look inside.
//
// The counts make every loss a number: a batch says how many events came before it,
// whatever became of the batches that had them.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package batch
