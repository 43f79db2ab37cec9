// SPDX-License-Identifier: Apache-2.0

// Package format is what the packages of foreign trace formats have in common: the
// description by which the program finds them, and the way from what such a file says
// of calls to streams, which package seal turns into tapes.
//
//	file ──Format.Read──▶ Import ──Writer──▶ a stream for each host
//	tape ──Format.Write─▶ file
//
// A format is a package below this one with a variable Format; format/all lists them.
// What a foreign file does not say stays unsaid: a Writer makes up addresses, so that
// memory can be shown as an argument, and nothing else. What cannot be expressed is
// counted in Done, never dropped in silence.
//
// The package does not seal, resolve or order beyond return times.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package format
