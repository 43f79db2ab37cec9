// SPDX-License-Identifier: Apache-2.0

// Package options has the values that say how a replay works: what is compared, when calls
// are made, what is written, what is logged. Package replay, whose Options have fields of
// these types, gives them names of its own.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package options
