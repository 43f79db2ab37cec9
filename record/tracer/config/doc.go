// SPDX-License-Identifier: Apache-2.0

// Package config reads the configurations of iotape run: TOML with a table for each tracer.
//
// What it finds wrong it names with file, line, column, the reason and, for a misspelt key,
// what was perhaps meant; all of it, not only the first. Keys that it does not know are
// wrong. Doubts, such as a filter that is never true, are warnings.
//
// It looks at no process, directory or socket, and opens no file but those with keys that a
// chain of layers names: what the machine has to say is its caller's, who can have a place
// of the text named with Config.Errorf.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package config
