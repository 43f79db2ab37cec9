// SPDX-License-Identifier: Apache-2.0

// Package compat has no code but tests: they read files that released versions of iotape
// wrote, in every format that has a version. See docs/compatibility.md.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package compat
