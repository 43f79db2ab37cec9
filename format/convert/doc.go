// SPDX-License-Identifier: Apache-2.0

// Package convert turns tapes into files of other formats, and such files into tapes.
//
//	file ──format.Read──▶ streams ──seal──▶ tape
//	tape ──────format.Write──────▶ file, compressed if its name ends in .gz
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package convert
