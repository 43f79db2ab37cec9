// SPDX-License-Identifier: Apache-2.0

// Package archiverun archives the streams that a collector has staged, once or repeatedly, and
// removes the tapes beyond the limits.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package archiverun
