// SPDX-License-Identifier: Apache-2.0

// Package tracer has several tracers share one capture: each gets the records that its
// filter may want, with as much of them as it keeps, and gives them to its assembly driver.
// (The words are those of Tracefs, FAST 2004: a tracer is an input filter, an assembly
// driver, output filters and an output driver.)
//
//	capture ──frames──▶ Fanout ──▶ Tracer: filter, verbosity ──▶ Assembly ──▶ pipe, sink, tape
//	                     │
//	                     ├────▶ Tracer …
//	                     └────▶ flight.Recorder: what a tracer that joins later begins with
//
// What a tracer's stream lacks is what a capture with that filter and that policy for
// content would not have recorded: sealing picks the events that fit (package slice). A
// filter that is changed holds for calls that begin at that moment or later, for each
// exactly one of the two; the stream says so (trace.FilterChange).
//
// A tracer whose output fails loses records, which are counted; the others go on.
//
// The package does not know configurations (record/tracer/config), sockets (record/tracer/control), files
// or back ends.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package tracer
