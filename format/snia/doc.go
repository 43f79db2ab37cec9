// SPDX-License-Identifier: Apache-2.0

// Package snia converts between tapes and system-call traces in SNIA's schema for
// DataSeries, as Re-Animator's tools write and replay it (SNIA/reanimator-library,
// types IOTTAFSL::Trace::Syscall::*, version 1.00).
//
//	Import   a DataSeries file ─▶ a stream, which package seal turns into a tape
//	Export   a tape ─▶ a DataSeries file
//
// The schema knows 103 calls of a process tree and no objects: no inodes, no
// users but as numbers, no sockets' peers. What it cannot hold is counted by Export
// and named. What its files hold wrongly (flags that are all true, calls' ids that
// are garbage; see import.go) Import does not use.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package snia
