// SPDX-License-Identifier: Apache-2.0

// Package script writes a tape as text that a person can read and edit, and makes a tape
// of such a text: the command files of DFSTrace's untrace (Mummert and Satyanarayanan,
// "Long Term Distributed File Reference Tracing", Software: Practice and Experience
// 26(6), 1996), with content.
//
//	tape, initial tree ──Write──▶ DIR/skeleton   mkdir, file, symlink, link, mknod, xattr
//	                              DIR/replay     one line per event
//	                              DIR/final      the tree that is expected in the end
//	                              DIR/content    bytes that are too long for a line
//	DIR ──Compile──▶ tape with that tree as its snapshot
//
// A line of replay is a call in strace's notation:
//
//	0.093631000 0.000512000 0 30325 openat(AT_FDCWD, "a", O_RDONLY) = 4</d/a #7@0 mode=0100644 dev=8:1 ino=123>
//	enter       duration  CPU thread                                            what the kernel said of the file
//
// and what is left out has defaults (docs/script.md). Compile makes a stream of the text
// and seals it, so that names, descriptors and open files are those of the edited text.
// Write followed by Compile gives a tape whose replay is that of the first.
//
// # Promises
//
//   - What is wrong with a text is an Error with file, line, column and, where there is
//     one, a suggestion; nothing in it is passed over.
//   - Memory does not grow with the number of lines of replay, but with the number of
//     open files, chunks of content, and entries of the trees.
//   - A text of a stranger is hostile: every number and length is bounded before use.
//
// The package infers no trees and replays nothing.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package script
