// SPDX-License-Identifier: Apache-2.0

// Package auditd reads logs of the Linux audit daemon (audit.log, ausearch --raw): the format
// "auditd". The records of one event become a call, with names from its PATH records.
//
//	line ─parseLine─▶ record ─▶ event (all records of a serial number) ─▶ format.Call
//
// What ausearch -i prints has words in the place of numbers, and names without quotation marks (interpreted.go).
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package auditd
