// Package trace holds iotape's two containers: the stream, events in motion, and
// the tape, a trace at rest. It is the library's front door: Open a tape, range
// over its Events, read their content.
//
// A stream is a sequence of frames, each with a checked header (frame.go). A
// frame of records holds what a capture recorded, uninterpreted, one record
// after the other (record.go). Package seal turns a stream into a tape.
//
//	stream = frame*            frame  = header(64) payload
//	payload = record*          record = word(8) body, padded to 8 bytes
//
// Everything read is treated as hostile: lengths are checked before use, damage
// is reported as ErrCorrupt or ErrTruncated, and nothing panics. The exact
// layouts are in docs/format.md.
//
// The package does not capture, resolve or replay, and starts no goroutines
// that outlive a call.
package trace
