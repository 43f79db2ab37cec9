// SPDX-License-Identifier: Apache-2.0

// Package printtape prints the events of tapes with package stracetext, which reads no tapes.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package printtape
