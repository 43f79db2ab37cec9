// SPDX-License-Identifier: Apache-2.0

// Package compress is the layers that make blocks smaller: zstd with its levels, and
// s2, which takes less time. Each block is compressed by itself, so that it can be read
// without the others; one that would grow is kept as it is.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package compress
