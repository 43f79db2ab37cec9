// SPDX-License-Identifier: Apache-2.0

// Package command has the commands of iotape that need neither a database engine nor the libraries of
// servers. Program iotape has these; iotape-full has them and all others.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package command
