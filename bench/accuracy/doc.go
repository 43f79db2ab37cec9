// SPDX-License-Identifier: Apache-2.0

// Package accuracy measures how well a replay on one storage system tells how long the
// application would take there: the study of //TRACE (Mesnier et al., FAST 2007, section
// 5). Each application is recorded on one storage system and replayed on the others, in
// several modes; beside that, it really runs there.
//
//	a turn:  record ──▶ tape ──annotate        on the storage system to record on
//	         run                                on another one: what is true
//	         replay, in each mode               there, too
//	         run                                there, again: how well a run tells the next one
//	         record                             there, too: does it do the same work?
//
// A machine's speed changes within a minute, so an error is that of a turn, whose parts
// come right after each other; a row's is the median of its turns' (turn.go). Turns of all
// rows take turns. Nothing else may run on the machine.
//
// An application that does other work elsewhere than where it was recorded cannot be told
// by any replay of the recorded calls: what it does is counted (work.go), and errors are
// summed up with and without such.
//
// The storage systems are made on one machine (store.go): its disk, the disk with a limit
// of requests, and models of a disk with one arm and of a drive with many channels: a
// file system in user space (src/slowfs.c) that holds requests.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package accuracy
