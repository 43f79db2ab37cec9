// SPDX-License-Identifier: Apache-2.0

// Package alarm holds counts of calls against rules, and says when a measure becomes
// abnormal and when it is normal again.
//
//	text ──ParseRule──▶ Rule ──NewWatch──▶ Watch ──Look(ReadOut)──▶ []Alarm
//
// The package is pure. It knows package model/aggregate and the grammar of filters, and no
// kernel, no clock, no file and no network; analyze/aggregate/meter does what needs those.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package alarm
