// SPDX-License-Identifier: Apache-2.0

// Package safetext escapes characters that change what a terminal shows: control characters (C0, DEL and C1), marks
// that turn the direction of text, characters of no width, ends of lines and paragraphs, and bytes that are not UTF-8.
//
//	character      U+202E  ──▶  \u202e           as in JSON, so that JSON stays valid
//	above U+FFFF   U+E0001 ──▶  \udb40\udc01     as in JSON
//	byte           0x9b    ──▶  \x9b             only in text and CSV: JSON has no such bytes
//
// Names and content in a tape come from anywhere. What a command prints of them passes through a Writer where its
// output is a terminal. This is the only place that decides which characters are escaped.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package safetext
