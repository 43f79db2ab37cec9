// SPDX-License-Identifier: Apache-2.0

// Package snoop reads the tables that the eBPF tools of bcc and bpftrace print of files and disks: opensnoop,
// biosnoop, fileslower, and ext4slower with its likes (xfsslower, btrfsslower, nfsslower, zfsslower). The
// format is "snoop".
//
//	head ─▶ columns by name
//	row ─▶ format.Call: an open, a read, a write or a sync
//
// The columns are found by the table's head, because options and versions add some.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package snoop
