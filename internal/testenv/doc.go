// SPDX-License-Identifier: Apache-2.0

// Package testenv says what a test needs from its machine, and skips the test
// where that is absent: root, eBPF, a program, a loop device. Tests skip through
// it and in no other way, each with one line that says why.
//
// With IOTAPE_CI=1 the machine is one that has everything: a need that is not met
// fails the test, so that nothing goes untested in silence. Only Short still skips.
//
// It also makes what several packages' tests share: the iotape program, file
// systems in images, a directory of the unprivileged user's, a network that nothing else
// changes. It is for tests only and imports nothing of iotape.
package testenv
