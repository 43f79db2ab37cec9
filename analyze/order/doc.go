// SPDX-License-Identifier: Apache-2.0

// Package order shows the order of the events of several tapes by cause (package
// causal/happens): a summary, whether one event happened before another, and all events in
// that order, as text or as JSON.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package order
