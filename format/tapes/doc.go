// SPDX-License-Identifier: Apache-2.0

// Package tapes makes tapes of streams in files, which readers of foreign formats and
// recorders leave behind.
//
//	streams of format/all.Read ──Hosts──▶ sealed, and merged if they are of several hosts
//	stream, piped or not ────────Stream─▶ sealed
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package tapes
