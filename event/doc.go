// SPDX-License-Identifier: Apache-2.0

// Package event is iotape's vocabulary: the operation table, what each
// argument means, which user memory belongs to a call and when it can be read,
// how an operation is replayed, and the Event that everything after sealing
// works with.
//
// The operation table (table.go) is data. Capture back ends interpret it, the printer
// formats by it, the posix model and the replayer look up their cases by it, and
// event/gen writes the C header, the system-call numbers and docs/ops.md from
// it. Adding a call means adding a row; a case elsewhere is needed only where
// the call is really special.
//
// The package does no I/O, knows no file format and imports only the standard
// library.
package event

//go:generate go run github.com/iotape/iotape/event/gen
