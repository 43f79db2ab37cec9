// SPDX-License-Identifier: Apache-2.0

// Package otlp writes what a tape holds as coarse OpenTelemetry spans, in the JSON
// encoding of OTLP's files: an ExportTraceServiceRequest a line (opentelemetry.io/docs/
// specs/otel/protocol/file-exporter), which collectors read.
//
//	process   a span, the child of the process that forked it
//	session   from open to the last close: a span, the child of its opener's
//
// Each host is a trace. Calls are not spans: there are too many; they are counted.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package otlp
