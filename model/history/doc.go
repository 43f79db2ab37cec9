// SPDX-License-Identifier: Apache-2.0

// Package history gives each event of a tape what came before it: the open file that a
// descriptor stands for, with who opened it and what was moved through it so far, and
// the process with its ancestors. It is the part of the library that analyses are
// written with, after DFSTrace's (Mummert and Satyanarayanan, SP&E 26(6), 1996, Figure
// 8): one loop, and the same few words for all calls.
//
//	tape ──Events──▶ EventContext { Event, Process, Open(), Ended }
//
// State is that at the event: counters include it. Memory is that of what is open and
// of all processes; it does not grow with the number of events.
//
// The package does no I/O but the tape's, and keeps no content.
package history
