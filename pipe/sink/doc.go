// SPDX-License-Identifier: Apache-2.0

// Package sink opens the places that streams go to: files, which may be cut by size and
// time, raw block devices, standard output, and listeners on sockets.
//
// What is written to a sink comes in units, one a call of Write: the header of a piped
// stream first, then each block. Sinks cut and repeat between units only.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package sink
