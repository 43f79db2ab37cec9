// SPDX-License-Identifier: Apache-2.0

// Package hosts replays a tape by a team of processes, one on each host: SIGNALs go from
// one to the others over TCP.
//
//	hub (iotape replay --hosts) ──launches──▶ member (iotape replay-host) on each host
//	    ◀── joins, says that it is ready ──
//	    ── its part; go ──▶
//	    ◀── slot and task that is done ── ── to all others ──▶
//	    ◀── its report ──
//
// The hub passes on what members send each other, so that members need no connection but
// that to the hub. How members are launched and identified is in package internal/team.
//
// Every wait has a bound: for a member to join, and for a message of one that has joined. An
// error names the member that was waited for. When one fails, all are ended.
//
// The package knows nothing of tapes: package replay/execute does a member's part (RunPart).
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package hosts
