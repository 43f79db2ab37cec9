// SPDX-License-Identifier: Apache-2.0

// Package agent is what runs beside the programs of a host: it takes frames from a
// Source, keeps them in a spool, and sends them to a collector in the background.
//
//	Source ─▶ stream: batches ─▶ spool ─▶ shipper ─▶ NATS JetStream
//	   ▲                           │
//	   └── level ◀── governor      └ full: the source is told no, and the events are counted
//
// It promises:
//   - A bound on everything: memory, spool, share of the processors, size and age of a
//     stream. By default the host never waits for the agent.
//   - Every event that a Source hands over is sent, or declared lost with a reason; of
//     an agent that was killed the next one declares what was in its memory.
//   - A batch is sent until the broker has taken it, with an id that tells it from
//     all others.
//
// It does not know what frames are: Source is its border to capture.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package agent
