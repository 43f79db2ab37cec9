// SPDX-License-Identifier: Apache-2.0

// Package all lists the foreign trace formats, identifies files of them, which may be
// compressed, and reads them into streams. Package format/tapes makes tapes of those.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package all
