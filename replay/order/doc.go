// SPDX-License-Identifier: Apache-2.0

// Package order says which tasks of a replay must be done before another may begin.
//
// Tasks come in one order, the plan's, which explains the recorded results. Order
// relaxes it: a task waits for those earlier ones alone that its Mode demands. Every
// task that a task waits for is earlier in the plan, so that no replay can wait in a
// circle.
//
// What is shared is a resource: a name, the list of names in a directory, a file's
// content by range, its size, attributes, links and locks, an open file's position,
// the bytes in a pipe. A task reads a resource, changes it so that the order among such
// changes does not matter (two files made in one directory), or writes it. Tasks that
// follow each other on a resource form phases: reads are one phase together, commuting
// changes are, each write is one of its own; a task waits for all of the phase before
// its own. These are ROOT's stage,
// sequential and name rules (Weiss et al., "ROOT: Replaying Multithreaded Traces with
// Resource-Oriented Ordering", SOSP 2013, section 3), with what it leaves out: failed
// calls, hard links, directories as lists, shared positions, locks, pipes and sync.
//
// The package is pure and knows nothing of threads, system calls or time but what an
// event says.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package order
