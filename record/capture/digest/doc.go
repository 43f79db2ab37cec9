// SPDX-License-Identifier: Apache-2.0

// Package digest replaces content in the records of a stream by hashes of it, for
// recordings whose policy (capture.Content) says so: a piece becomes one
// trace.PieceHash for each event.HashBytes of its argument's bytes, counted from
// the first, however the recorder cut them into pieces and records. So equal bytes
// give equal hashes. Where the policy is signatures, each is a similar.Digest, which tells
// besides what the bytes resemble, and is followed by a trace.PieceSketch. A part with a byte that could not be read
// has no hash; all of
// it is missing.
//
// Both back ends pass the payloads of their frames through a Rewriter.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package digest
