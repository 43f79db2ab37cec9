// SPDX-License-Identifier: Apache-2.0

// Package scap reads the capture files of sysdig and Falco (.scap), plain or in gzip.
//
// A file is blocks as in pcapng: a section header, the machine, its processes and their
// descriptors as they were at the start, users and interfaces, then an event a block.
// Blocks and events of all versions are understood, those of the newest drivers too,
// which record no entries of calls; such calls have no duration.
//
//	block  = type(4) length(4) body length(4)
//	event  = cpu(2) [flags(4)] time(8) thread(8) length(4) type(2) [parameters(4)]
//	         length(2) of each parameter, the parameters
//
// events.txt says what the parameters of an event are; events without an entry there,
// and those that say only a call's number, are counted. The facts are those of
// falcosecurity/libs: userspace/libscap/engine/savefile/scap_savefile.c and
// driver/event_table.c.
//
// Captures hold the first bytes of buffers only (80, unless sysdig -s asked for more):
// the rest is marked as left out. Of processes the umask is not known, and taken to be
// 022.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package scap
