// SPDX-License-Identifier: Apache-2.0

// Package tool does to whole streams what iotape pipe does: it takes them through layers,
// takes the layers off, copies and checks them, block by block.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package tool
