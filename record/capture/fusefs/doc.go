// SPDX-License-Identifier: Apache-2.0

// Package fusefs is the capture back end that stands between programs and a directory: a
// stackable file system (FUSE) that passes each operation to the lower directory and
// records it. It sees what reaches the file system, of all programs and of the kernel
// itself, reads and writes through mappings among it, and needs no right to trace
// anybody.
//
//	program ─▶ kernel ─▶ /dev/fuse ─▶ FS ─▶ lower directory
//	                                   └──▶ records ─▶ frames, of each recording
//
// It keeps the contract of package capture for records, and knows nothing of tapes. What
// differs from the other back ends is in docs/mount.md; in short:
//
//   - Operations are recorded as the calls that do the same: LOOKUP and GETATTR as
//     newfstatat, READ as pread64, and so on. Paths are relative to the lower directory,
//     which is the working directory of all.
//   - All callers share one table of descriptors, the mount's, and its numbers: a request
//     names an open file, not the caller's descriptor. The stream says so by having the
//     serving process clone each caller (CLONE_FS, CLONE_FILES).
//   - The umask is 0, and the mode of what is made is already masked.
//   - What the kernel decides by itself (permissions, names that it has cached) and file
//     positions are not seen.
//
// # Locks
//
// dispatcher.mu is taken before nodes.mu; every other lock is taken alone, but for
// handle.mu, which is held over calls on the handle and their records.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package fusefs
