// SPDX-License-Identifier: Apache-2.0

// Package control lets running tracers be looked at and changed from another process: HTTP
// with JSON over a Unix socket, which has mode 0600, in a directory of mode 0700. A peer that
// is neither root nor the socket's owner is refused whatever the modes say (SO_PEERCRED).
//
//	GET    /tracers              Info
//	POST   /tracers              a configuration's [[tracer]] tables, as TOML: add them
//	POST   /tracers/NAME/start   Answer
//	POST   /tracers/NAME/stop    Answer, when the tape is sealed
//	PATCH  /tracers/NAME         Change: Answer
//	DELETE /tracers/NAME         Answer
//
// What went wrong is an Answer with Error, and a status of 400 or more. The package does not
// know what tracers are.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package control
