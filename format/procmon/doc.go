// SPDX-License-Identifier: Apache-2.0

// Package procmon reads what Process Monitor of Windows saves as CSV: the format "procmon". Its
// operations on files become the nearest calls, with names of drives as directories: C:\a is /C/a.
//
// The package does not read PML, nor operations on the registry and the network.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package procmon
