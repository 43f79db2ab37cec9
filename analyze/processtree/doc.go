// SPDX-License-Identifier: Apache-2.0

// Package processtree finds the processes of a tape: who made whom, which programs they
// executed, what they did and how they ended.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package processtree
