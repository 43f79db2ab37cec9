// SPDX-License-Identifier: Apache-2.0

// Package throttle finds out which node of a parallel application waits for which, by
// experiment: the throttling of //TRACE (Mesnier et al., "//TRACE: Parallel Trace Replay
// with Approximate Causal Events", FAST 2007, section 4).
//
//	tape of a run ─────────────────────────────┐
//	Watch, nobody held ──▶ Run: longest gaps ──┤
//	Watch, node 1 held ──▶ Run: holds ─────────┼── Merge ──▶ causal.Evidence ──▶ annotations
//	Watch, node 2 held ──▶ Run: holds ─────────┘
//
// A node is a thread that makes I/O calls (Calls): of a rank of MPI usually its first. It
// is known in all runs by its place in the tree of processes: 1.2/3 is the third thread
// that the second child of the command has made.
//
// To hold a node is to keep each P-th of its I/O calls from beginning until every other
// node has ended or is stuck. A node is stuck when it makes no call for longer than it ever
// did at that place while nobody was held, counted twice, and a patience more: in CPU time
// where it spins, in time asleep where it sleeps. Time that it waits for a processor does
// not count, so a busy machine makes no difference. Whatever any node does starts the count
// anew for all.
//
// What a stuck node does next, it does because of the call that was held, or of what came
// after that: the one waits for the other. A node that was held itself has never to wait
// for anybody, for all others are ahead of it; so the time between its calls is computing,
// also where its processes wait for each other by spinning on shared memory, which no trace
// shows. What any run contradicts, in which the one call began before the other had ended,
// is dropped.
//
// Threads are held in a ptrace stop, at calls that a seccomp filter selects; nothing is
// preloaded, so programs may be static. Every wait has a bound: each hold, and each run.
//
// The package knows nothing of how tapes are recorded or replayed.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package throttle
