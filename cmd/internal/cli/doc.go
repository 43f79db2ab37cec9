// SPDX-License-Identifier: Apache-2.0

// Package cli has what the commands of iotape share: the console that they speak to, exit
// statuses and hints, and the flags and values of flags that several of them have.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package cli
