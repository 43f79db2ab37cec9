// SPDX-License-Identifier: Apache-2.0

// Package folded writes the stacks of a tape in the form that flame graph tools read: a line for each stack, its
// functions from the outside separated by semicolons, then a space and a number.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package folded
