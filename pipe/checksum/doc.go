// SPDX-License-Identifier: Apache-2.0

// Package checksum is the layer that makes changes of a stream seen: each block ends in
// two checksums, keyed BLAKE3, of 16 bytes each.
//
//	┌─────────┬─────────────────────────┬─────────────────────────────────────────┐
//	│ payload │ content: of the payload │ place: of content, stream, number, final│
//	└─────────┴─────────────────────────┴─────────────────────────────────────────┘
//
// The first says whether the bytes are genuine, the second whether they stand where they
// belong. So a block that was edited is told from one that was put in the place of
// another. Who does not have the key can make neither. Without a key (package function
// Plain) the layer finds accidents, and nothing that is done on purpose.
//
// Whoever can write with the key can also make a new stream: the key shows that the
// stream is as some holder of the key wrote it.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package checksum
