// SPDX-License-Identifier: Apache-2.0

// Package open opens whatever can be read as a tape: a tape, a recording that is not
// sealed, a stream that was piped, and a file of each foreign format that package
// format/all lists.
//
//	path ──▶ tape directory ─────────────────────────────────────▶ trace.Open
//	     ├─▶ directory of a recording ──▶ its stream ─┐
//	     ├─▶ stream, piped or not ────────────────────┼─▶ format/tapes ──▶ tape in os.TempDir
//	     └─▶ foreign file ──▶ format/all.Read ────────┘
//
// A tape in os.TempDir is as large as what it is made of, or larger, and Tape.Close removes
// it. A program that reads only tapes needs trace.Open alone, and links none of the formats.
package open
