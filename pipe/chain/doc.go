// SPDX-License-Identifier: Apache-2.0

// Package chain makes layers of a text, and finds the keys that undo them.
//
//	async,zstd:3,encrypt:age1…,checksum:@key,block:1M
//
// Secrets are never in the text: it names files, whose mode has to keep others from
// reading them, or variables of the environment.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package chain
