// SPDX-License-Identifier: Apache-2.0

// Package formattest is for the tests of the formats: it makes tapes of foreign files
// and prints them.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package formattest
