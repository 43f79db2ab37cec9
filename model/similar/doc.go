// SPDX-License-Identifier: Apache-2.0

// Package similar finds content that is the same in part: buffers that resemble each
// other, and the bytes of one that stand in another.
//
//	content ──Signer──▶ Signature ──Index──▶ pairs of classes ──Jaccard──▶ similar
//	content ──Origins──▶ which bytes of it stood where before
//
// Resemblance is the Jaccard index of the sets of shingles: all runs of k bytes. A
// Signature (MinHash; Broder, On the resemblance and containment of documents, 1997)
// estimates it from some hundred numbers, and an Index (locality-sensitive hashing in
// bands) finds pairs without comparing all. Equal signatures are one class, however
// many there are: content that comes again and again costs nothing more.
//
// Resemblance does not see that a small buffer is all in a large one. Origins does: it
// cuts content where a rolling hash of the bytes themselves says so, so the same bytes
// are cut at the same places whatever stands in front of them, and then compares
// bytes, so that what it finds is exact.
//
// Pairs is an Index for all at once, in less memory; a Digest is a signature as small as a
// hash, which recordings keep in place of content, with a sketch (odd.go) that tells how
// much two contents share.
//
// CAT has its own shingles, hashes and bands (cat.go), for traces that have its
// signatures.
//
// The package is pure: the same answer for the same content everywhere. It reads no tapes,
// keeps no goroutines and judges nothing: who calls it computes signatures once per
// chunk, and says what a pair means. Nothing is safe for concurrent use but what says so.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package similar
