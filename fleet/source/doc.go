// SPDX-License-Identifier: Apache-2.0

// Package source is what an agent records with: the capture with eBPF, or made-up
// events for tests and simulations.
//
//	record/capture/ebpf ─▶ trace.StreamWriter ─▶ frames ─▶ fleet/agent.Sink
//
// It is the one place where capture and fleet meet: it knows what frames and records
// are, counts them, and writes into the stream what the agent did not take. The
// agent behind the Sink knows none of that.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package source
