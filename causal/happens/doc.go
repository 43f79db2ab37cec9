// SPDX-License-Identifier: Apache-2.0

// Package happens orders the events of one or more tapes by cause (happened-before;
// Lamport, CACM 21(7), 1978), whatever the clocks of their hosts say.
//
//	tapes ─▶ Load ─▶ Order: Schedule, Clock, Before, Skew, Contradictions
//
// The edges are those that package causal proves (order within threads, fork and wait,
// connections, bytes of streams, datagrams, wake-ups). Of logs that were imported from
// Falcon and CAT there are, beside these, the constraints of Falcon's model: what comes
// before a join, locks and notifications in the order of the log, CLOSE before SHUTDOWN.
//
// Everything takes time linear in events and edges, but for Skew, which is cubic in the
// number of hosts. Nothing is solved: what contradicts itself is reported, and the rest
// is ordered all the same.
//
// The package is pure. It does not look at content, nor decide what is similar.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package happens
