// SPDX-License-Identifier: Apache-2.0

// Package view shows what was counted: as a table, as JSON, and live on a terminal.
//
//	ReadOut, Table ──▶ Options.Text   a table for people, of an interval or of all
//	                ├▶ Options.JSON   an object, one for each interval
//	                └▶ Live           a screen that is drawn anew with each read-out
//
// What programs chose (their names, extensions) is made safe for terminals. The package
// does not count, and knows neither kernels nor alarms' consequences.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package view
