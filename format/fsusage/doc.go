// SPDX-License-Identifier: Apache-2.0

// Package fsusage reads what fs_usage of macOS prints of file-system calls: the format "fs-usage".
//
//	line ─parse─▶ time, call, descriptor, bytes, offset, errno, name, duration, process ─▶ format.Call
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package fsusage
