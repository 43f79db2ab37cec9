// SPDX-License-Identifier: Apache-2.0

// Package tracerun records with several tracers at once, as a configuration says.
//
//	config.Config ──▶ Run ──▶ one capture per target ──▶ tracer.Fanout ──▶ each tracer's output:
//	                   ▲                                    a session.Stream (tape or sink), or
//	                   │                                    an aggregate
//	        requests of iotape tracers (package control)
//
// Tracers of one target share its capture. Each is started, stopped and changed while the
// others go on.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package tracerun
