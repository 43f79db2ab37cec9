// SPDX-License-Identifier: Apache-2.0

// Package hostile has no code but tests: everything that reads a tape is run over imported
// samples, and over samples that were changed at random. See docs/testing.md.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package hostile
