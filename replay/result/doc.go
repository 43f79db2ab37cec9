// SPDX-License-Identifier: Apache-2.0

// Package result has what came of a replay: the Report with differences and times, and the
// log. Package replay, whose Run returns a Report, gives these types names of its own.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package result
