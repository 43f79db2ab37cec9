// SPDX-License-Identifier: Apache-2.0

// Package anon makes tapes that others may see of tapes that they may not: it replaces
// what identifies people, machines and data, field by field, and puts it back for who has
// the keys.
//
//	tape ──Anonymise(keys, fields)──▶ tape ──Reveal(some of the keys)──▶ tape
//
// Every Field has a key of its own, so a name that is a directory and a user at once
// becomes two names, and whoever gets a key gets that field and no other. A mapping
// depends on the key and the value alone: equal values stay equal, in all tapes of one
// key file, and there are no tables to keep.
//
// Everything keeps its length, so what the kernel takes as a name, it takes again, and
// structures need no moving:
//
//	short strings    Feistel network over an alphabet (text.go), cycle-walked within
//	                 what the string is: digits, plain, printable, any bytes
//	numbers          Feistel network over the numbers of as many digits (number.go)
//	content          wide-block cipher LIONESS over each chunk (wide.go), or a
//	                 substitution of bytes (substitute.go), or nothing at all
//	paths            name by name (path.go)
//	structures       field by field, as package event/layout reads them (memory.go)
//
// Values of one length leave no room for a tag each, so authenticity is that of the tape:
// the manifest, which has the hashes of all files, ends in a MAC for each field (sign.go).
//
// # Promises
//
//   - Reveal with all keys gives the events, trees and content of the original, unless
//     content was removed.
//   - An anonymised tape is a tape: it replays, and its statistics are the same but for
//     names.
//   - What the package cannot read in a call's memory it takes for content, not for
//     harmless.
//
// What survives, and what follows from it, is in docs/anonymise.md. The package does not
// judge whether a tape is anonymous: Survey counts what still tells things apart.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package anon
