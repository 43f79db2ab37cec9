// SPDX-License-Identifier: Apache-2.0

// Package term is what commands show while they work: a progress bar on a
// terminal, a plain line every few seconds elsewhere, and colours only where
// somebody sees them.
//
// Everything here goes to standard error; results are none of its business.
package term
