// SPDX-License-Identifier: Apache-2.0

// Package sysdig reads the text that sysdig prints of system calls, in its default format: the format
// "sysdig-text". Package scap reads its captures, which have more.
//
//	line ─parse─▶ thread, time, direction, call, fields by name ─pair─▶ format.Call
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package sysdig
