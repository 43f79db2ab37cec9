// SPDX-License-Identifier: Apache-2.0

// Package eventsource reads a tape's events for a replay: in an order that explains
// their results (package linearize), each with the state of its thread around it (package
// posix).
//
// The state is of the tape's own order, in which the kernel handed out descriptors; the
// order of the events is not.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package eventsource
