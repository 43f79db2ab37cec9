// SPDX-License-Identifier: Apache-2.0

// Package fiolog converts between tapes and the iologs of fio, the flexible I/O
// tester, versions 2 and 3 (HOWTO, "Trace file format").
//
//	Import   an iolog ─▶ a stream: open, pread64, pwrite64, fsync … of one process
//	Export   a tape ─▶ an iolog of version 3, which fio --read_iolog replays
//
// An iolog knows names, offsets and lengths of files: no processes, no content, no
// results, and nothing of directories. What Export leaves out it counts.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package fiolog
