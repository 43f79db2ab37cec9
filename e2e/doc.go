// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the iotape program from outside: testdata/*.txtar are scripts
// for each command and each kind of bad input, replay_test.go records, replays and
// compares every program of package workload with both back ends, signal_test.go
// presses Ctrl-C, and disk_test.go fills the disk.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package e2e
