// SPDX-License-Identifier: Apache-2.0

// Package staging is the border between the collector, which receives streams, and
// the archive, which makes tapes of them: a directory of streams by host.
//
//	DATA/staging/HOST/STREAM/
//	  about.json   About: whose stream, and why it began; written first
//	  stream       the bytes that the agent sent, in order, each once
//	  commits      the collector's: up to where stream is known to be right
//	  end.json     End: why it ended, and what of it is missing; written last, by rename
//
// A recording may have several streams: those that continue another one begin in its
// middle. A stream with an end is finished: the collector does not touch it again, and
// whoever archives it may read it, and then remove its directory. One without is
// the collector's alone.
//
// The bytes are opaque: nothing here knows what a frame or an event is. Names come
// from hosts that may be hostile, so all are checked before they become paths.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package staging
