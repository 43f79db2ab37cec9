// SPDX-License-Identifier: Apache-2.0

// Package straceread reads and writes the text of strace(1), from version 4 on: the
// format "strace".
//
//	line ─prefix─▶ thread, time ─notation─▶ values ─call, memory─▶ format.Call
//
// What an argument is says the operation table; its names and structures become numbers
// and bytes by event.Set.ParseValue and layout.Memory.Encode, the inverse of what
// package stracetext prints. What strace does not say (times without -t, the content of
// buffers beyond -s, fields of structures without -v, the umask) is not made up, but
// for the order of lines without times, and the umask 022.
//
// The package does not read files of several processes (strace -ff) together.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package straceread
