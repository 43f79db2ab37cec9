// SPDX-License-Identifier: Apache-2.0

// Package staging is the interface between the collector, which receives streams, and the
// archive, which makes tapes of them: a directory of streams by host.
//
//	DATA/staging/HOST/STREAM/
//	  about.json   About: the host of the stream, and why it began; written first
//	  stream       the bytes that the agent sent, in order, each once
//	  commits      for the collector: which bytes of the stream are durable
//	  end.json     End: why the stream ended, and what is missing; written last, by rename
//
// A recording may have several streams, each of which continues the one before. A stream with
// an end is finished: the collector does not change it any more, and the archive may read it
// and then remove its directory. Only the collector uses a stream without an end.
//
// The bytes are opaque: the package knows neither frames nor events. Names come from hosts
// that may be hostile, so they are checked before they become paths.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package staging
