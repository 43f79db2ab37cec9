// SPDX-License-Identifier: Apache-2.0

// Package blkparse imports what blkparse(1) prints of a block device's trace
// (blktrace(8)): its default text, with or without -t.
//
// A request that the driver completed becomes a pread64 or pwrite64 of the device, or a
// fallocate for a discard. It began when it was issued to the driver (D) or, with
// devices that have no such queue, when it was queued (Q), and is of the process that
// queued its first part. What happens between (merges, plugs, remaps) is counted.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package blkparse
