// SPDX-License-Identifier: Apache-2.0

// Package replayed shows what came of replays: the verdict of one, as text or JSON, and of
// several replays of a tape on different file systems, side by side.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package replayed
