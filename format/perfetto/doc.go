// SPDX-License-Identifier: Apache-2.0

// Package perfetto writes tapes as Perfetto's protobuf traces, which ui.perfetto.dev and
// trace_processor open.
//
// A tape of one host is a trace: TracePackets of one sequence, with track descriptors
// for processes, threads and counters, TrackEvents for what package timeline tells, the
// process tree, and a clock snapshot. One of several hosts is a ZIP archive with a trace
// for each and a perfetto_manifest that names the machines.
//
// The messages are written field by field as the trace is told; what is kept are the
// numbers of interned strings, of which there are a limited number at a time. Field
// numbers are those of protos/perfetto/trace in Perfetto's sources (fields.go), the
// manifest is docs/reference/perfetto-manifest.md.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package perfetto
