// SPDX-License-Identifier: Apache-2.0

// Package redact masks secrets in a recording before it is written: private keys, tokens,
// passwords, and what the patterns of the user say. It rewrites frames of records, between a
// back end and the stream's output.
//
// Bytes of content that are masked become a piece with the flags trace.PieceMissing and
// trace.PieceMasked: it has their number, and not the bytes. So a replay moves as many bytes,
// makes them up, and does not compare them. In memory that is not content (arguments of programs,
// environments, structures) each byte that is masked becomes an asterisk. Names of files stay.
//
// The bytes that calls move through one file in one direction are looked at as one text, in the
// order of the records, so that a secret that is divided over calls is found. What a frame
// before had is not masked any more when the rest comes: of such a secret the rest is masked.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package redact
