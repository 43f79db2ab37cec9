// SPDX-License-Identifier: Apache-2.0

// Package hosts runs an application on several hosts for discover: each host's part is
// started, recorded and held by a helper there (iotape discover-host).
//
//	hub (iotape discover --hosts) ──launches──▶ member on each host
//	    ── what time is it? ──▶               its clock is compared with the hub's
//	    ── the task ──▶                       record a part, or watch it
//	    ◀── the tape, or how nodes are ──
//	    ── look, ask, release ──▶
//	    ◀── the part's run ──
//
// A call that is held on one host goes on when the nodes of all hosts have ended or are
// stuck. The hub decides that: whatever moves anywhere begins a new epoch, from which all
// members count anew. When all say that they are free since the same epoch it asks all once
// more, and has the call released if that is still so.
//
// How members are launched, and know each other, is in package internal/team. Every wait has
// a bound; an error names the host that was waited for.
//
// The package knows nothing of how a part is recorded: its user does.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package hosts
