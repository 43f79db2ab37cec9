// SPDX-License-Identifier: Apache-2.0

// Package shiviz writes the calls of a tape as a log for ShiViz, which draws who waited
// for whom (Beschastnikh et al., CACM 59(8), 2016; bestchai.bitbucket.io/shiviz).
//
//	line 1    how to parse the log: ShiViz takes it from there
//	line 2    empty: one execution
//	then      THREAD {"THREAD":3,"OTHER":7}
//	          comm openat(…) = 3
//
// Each thread is a time line. Its clock counts its own events and knows of those of
// others what package causal proves.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package shiviz
