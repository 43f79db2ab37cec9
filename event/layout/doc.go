// SPDX-License-Identifier: Apache-2.0

// Package layout decodes structures of the kernel's interface as they lie in a
// program's memory on each architecture: struct stat, struct msghdr with what it
// points to, arrays of struct pollfd, directory entries, what an ioctl request has …
//
//	bytes of an argument ─▶ Memory.Decode ─▶ Value: a number with its meaning, text, bytes,
//	                                         or a structure or list of Values
//
// Most structures are rows of tables: a field's name, offset, size and Kind
// (stat.go, process.go, wait.go …), read by one walker (value.go). Code is only for those
// whose form depends on what is in them: socket addresses, messages, directory
// entries.
//
// Every byte is hostile: what does not fit is not decoded, or ends a list.
//
// The package knows what things are, not how they are written: format/stracetext
// makes text and JSON of Values.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package layout
