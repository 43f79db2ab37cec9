// SPDX-License-Identifier: Apache-2.0

// Package wire carries streams of package pipe over connections, each block exactly once:
// a Client keeps blocks until the listener has acknowledged them, and connects again when a
// connection is lost; a Server takes the blocks that it does not have yet, in order.
//
//	client                                     server
//	  │── hello: "iotape W", version, header ───▶│ opens its log of the stream, by serial
//	  │◀──────────────── answer: it has n blocks ─│
//	  │── block n ──────────────────────────────▶│ number, serial and length have to fit
//	  │── block n+1 ────────────────────────────▶│
//	  │◀──────── answer: it has n+2 blocks, synced│
//
// Both sides have limits. The client limits the unacknowledged blocks in memory and, if
// requested, in a file. The server limits its connections, streams, bytes, and the time that
// a peer may take for a hello or a block. Blocks are opaque: the package needs no key, and
// encrypted blocks stay encrypted, also in a spool.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package wire
