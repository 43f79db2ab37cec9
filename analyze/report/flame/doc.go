// SPDX-License-Identifier: Apache-2.0

// Package flame sums the calls of a tape by their stacks, and makes the tree of a flame graph of them.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package flame
