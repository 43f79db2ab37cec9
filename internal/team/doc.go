// SPDX-License-Identifier: Apache-2.0

// Package team starts one helper of this program on each of several hosts and connects
// them to the process that did: its hub.
//
//	hub (Gather) ──launches──▶ member (Join) on each host
//	    ◀── joins: a connection, its name ──
//	    ◀── frames, whatever the two agree upon ──▶
//
// Members are launched by words that the user gives ("ssh {host} {command}"). They reach
// the hub and nobody else; it listens on the loopback device unless told otherwise.
//
// Connections are TLS 1.3; both sides prove that they have the same secret: the key of
// their certificates is derived from it. It is a file that only its owner can read, or one
// that the hub makes up, and that is in no file: members get it on their standard input, or
// all of them from the hub's memory where one launcher starts them all. On a command line
// it is never.
//
// Every wait has a bound: for a member to join, also after its launcher has ended, and for
// a word of one that has joined. An error names the member that was waited for.
package team
