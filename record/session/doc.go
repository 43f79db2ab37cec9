// SPDX-License-Identifier: Apache-2.0

// Package session records as a person means it: a Plan says what to record, how, and to
// which tape; Record carries it out.
//
//	Plan ──▶ Record ──▶ NAME.tape.partial/stream ──▶ package sealing ──▶ NAME.tape
//	           │              ▲ space guard: room for sealing is kept on the disk
//	           ├─▶ Flight: only the recent past, in memory; tapes of it on demand
//	           └─▶ Plan.To: a file, device or connection; no tape
//
// A plan tries its back ends in order and records with the first that this machine
// supports. The programs run as they would without being recorded: input, output, signals
// and exit status are their own.
//
//	res, err := session.Record(ctx, &session.Plan{
//		Tape:    "ls.tape",
//		Capture: capture.Options{Command: []string{"ls", "-l"}},
//	})
//
// A back end that starts the command again itself (ptrace, interposition) runs helper
// processes: the main function of the program calls Helper first.
//
// The API of this package is stable; see docs/library.md.
package session
