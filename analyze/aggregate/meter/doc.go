// SPDX-License-Identifier: Apache-2.0

// Package meter lets counting go on, and does with what is counted what needs a clock, a
// network or commands: it shows each read-out, offers the sums to Prometheus, and raises
// the alarms of rules.
//
//	Counting ──read-outs──▶ Meter ──▶ Options.Show   a screen, a table, JSON
//	                          ├─────▶ Listen         GET /metrics
//	                          └─────▶ rules ──▶ Options.Alarm, Exec, Detail
//
// It does not know who counts (Counting: record/count.Run), how anything is shown, or
// what a detailed recording is (Options.Detail).
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package meter
