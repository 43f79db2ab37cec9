// SPDX-License-Identifier: Apache-2.0

// Package throttlerun finds the dependencies between the nodes of a parallel application by
// experiment, as //TRACE does: it records the application once and runs it again for each
// node with the calls of that node held (package throttle), and stores what that shows as
// the annotations of the tape.
//
//	session.Record ──▶ tape ─┐
//	throttle.Watch, a run with nobody held ─┤
//	throttle.Watch, a run for each node ────┴─▶ throttle.Merge ──▶ annotations of the tape
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package throttlerun
