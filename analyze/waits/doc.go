// SPDX-License-Identifier: Apache-2.0

// Package waits shows what annotating a tape found: what its threads waited for, how long
// they computed and slept, and how much of the run's time that explains.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package waits
