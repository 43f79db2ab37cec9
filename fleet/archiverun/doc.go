// SPDX-License-Identifier: Apache-2.0

// Package archiverun archives what a collector has staged, once or again and again, and
// removes the tapes that are not to be kept.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package archiverun
