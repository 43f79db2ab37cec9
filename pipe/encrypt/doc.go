// SPDX-License-Identifier: Apache-2.0

// Package encrypt is the layer that makes blocks unreadable for all but the holders of
// some secret keys, which the writer does not have.
//
// A stream's first key is random. It is encrypted for the recipients' public keys with
// age (X25519, or age's hybrid keys), and that is a parameter in the stream's header.
// Each block has a key of its own, made from a chain that goes forward only:
//
// // first ──next──▶ chain 1 ──next──▶ chain 2 ──next──▶ … next(k) = SHA-256("iotape pipe 1: next
// chain key " ‖ k)
// // │block │block │block block(k) = SHA-256("iotape pipe 1: key of a block " ‖ k)
//
//	   ▼               ▼                 ▼
//	AES-256-GCM     AES-256-GCM       AES-256-GCM
//	 block 0         block 1           block 2
//
// The writer overwrites each key of the chain when it has the next one. So whoever takes
// a recorder's memory at some moment reads what it will write, and nothing of what it
// has written, but for what the Go runtime has not yet reused: the expanded key of the
// last blocks, and blocks that are under way.
//
// The nonce is the block's number; associated data is the block's pipe.Place, so that a
// block is good in its own place and stream only.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package encrypt
