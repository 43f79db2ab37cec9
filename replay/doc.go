// Package replay repeats what a tape recorded, inside one directory, and checks
// that it came out the same.
//
//	tape ─▶ initialtree.Infer ─▶ tree.Restore                               prepare
//	tape ─▶ eventsource (posix, linearize) ─▶ planner ─▶ order ─▶ lanes ─▶ check   run
//	final ─▶ tree.TakePaths + tree.Compare                               verify
//
// Package eventsource reads the events in an order that explains their results, each with the
// state of its thread; of a tape of several hosts it tells threads, files and names apart,
// and nobody behind it knows of hosts. The planner makes a task of each event: what to do,
// with which open files, and, from package order, which tasks have to be done before. Tasks
// of a thread of the recording go into a lane, whose worker does them one after the other,
// on a thread of its own. A task waits for lanes to get so far, by their counters: there is
// no lock on the way of a call, and who has to wait for long sleeps until its number has
// come (sleep.go). Reads and writes of one buffer, which tapes are full of, are nothing but
// a step in a batch; planning goes on ahead of the calls by so many bytes (stock.go). What
// reads give is compared with hashes where these are known (known.go).
//
// # Order
//
// See package order and docs/replay.md. Every task waits for earlier ones only, in one
// order for all, so that nobody waits in a circle.
//
// # Confinement
//
// The calls run in a child process with mount and, for ordinary users, user
// namespaces of its own, whose root directory is the target, mounted nodev and
// nosuid. Nothing that a tape says can name anything outside.
//
// # What is not repeated
//
// Processes, pipes, sockets and waits are modelled, not made; files that the
// kernel makes up (/proc, /sys, /dev) are not touched; what depends on the machine
// (a full disk, another file system, an interrupting signal) is not provoked.
// docs/ops.md has the list by operation. Inode and device numbers, times, and the
// sizes of directories cannot be reproduced and are not compared.
//
// The package knows nothing of capture or sealing.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package replay
