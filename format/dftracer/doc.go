// SPDX-License-Identifier: Apache-2.0

// Package dftracer imports traces of DFTracer (.pfw and .pfw.gz): Chrome trace events,
// one JSON object a line, of the POSIX and STDIO functions of programs and of regions
// that programs name.
//
// Functions become the calls that are theirs; calls.go has the list. DFTracer keeps the
// results of some functions only, and never errno: a call without result is one whose
// return was not seen, and one that failed has errno 4095, which is none. Regions
// become notes.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package dftracer
