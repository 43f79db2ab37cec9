// Package replay repeats what a tape recorded, inside one directory, and checks
// that it came out the same.
//
//	tape ─▶ Infer ─▶ Skeleton ─▶ tree.Restore            prepare
//	tape ─▶ planner ─▶ task ─▶ worker per node ─▶ check   run
//	final ─▶ tree.TakePaths + tree.Compare                verify
//
// # Order
//
// Every thread of the recording has a worker that does its calls one after the
// other. A call starts when every call that had returned before it was made is
// done; calls that overlapped in the recording may run in either order, unless they
// share a file position, append to one file, or concern one name or one range of a
// file: then they keep the tape's order.
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
package replay
