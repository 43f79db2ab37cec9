// SPDX-License-Identifier: Apache-2.0

// Package auditd reads logs of the Linux audit daemon (audit.log, ausearch --raw): the format
// "auditd". The records of one event become a call, with names from its PATH records.
//
//	line ─parseLine─▶ record ─▶ event (all records of a serial number) ─▶ format.Call
//
// The package does not read what ausearch -i prints, whose values are for people.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package auditd
