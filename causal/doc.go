// Package causal says which events must have come before which, whatever the clocks say
// (Lamport, CACM 21(7), 1978): what a tape proves.
//
//	events ──Add──▶ Builder ──Before──▶ the direct predecessors of each event
//
// Proved are: the order within a thread; that a thread begins after the call that made
// it; that a wait returns after the end of its child; that a woken thread goes on after
// what its waker did before; and that bytes are read after they were written, for pipes,
// pairs of sockets and connections whose names say both ends ("TCP:[a->b]"), if their
// beginning is in the tape. Where calls overlapped so that it is open which bytes were
// whose, nothing is said.
//
// An event may come before one that has a lower number: tapes are ordered by returns,
// and a reader can return before its writer does.
//
// The package is pure. It does not solve, guess or compare content.
package causal
