// SPDX-License-Identifier: Apache-2.0

// Package lint holds the house rules that are checked by plain tests: who may
// import whom, what packages are called, that each says what it is, how long a file
// may be, how wide a line and how complex a function. They need no tool but the go
// command. The table of imports is in rules.go.
//
// Formatting, vet and staticcheck are the Makefile's (internal/tools/linters).
package lint
