// SPDX-License-Identifier: Apache-2.0

// Package top counts calls for a person: it reads out the sums of each interval and shows
// them as tables, as JSON or on a live screen, and records in detail what raises an alarm.
//
//	record/count ──sums──▶ analyze/aggregate/meter ──read-outs, alarms──▶ analyze/aggregate/view
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package top
