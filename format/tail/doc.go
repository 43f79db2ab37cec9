// SPDX-License-Identifier: Apache-2.0

// Package tail prints the events of a recording while it is made.
//
//	file, growing ──▶ File ──┐
//	wire.Server ──▶ Serve ───┼──seal.Watch──▶ events ──format/stracetext──▶ lines
//	record/session ▶ Live ───┘
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package tail
