// SPDX-License-Identifier: Apache-2.0

// Package aggregate sums calls up instead of recording them: counters and a histogram of
// latencies for each operation, user, process, extension or latency, whichever of these
// rows are to be told apart by.
//
//	kernel (record/count) ─┐                      ┌─▶ rates, percentiles, tables
//	                       ├─▶ Table ─▶ ReadOut ──┤
//	tape (Table.Count) ────┘                      └─▶ analyze/alarm: rules that raise alarms
//
// It is the aggregate driver of Tracefs (Aranya, Wright and Zadok, FAST 2004, section 3.3),
// seen from outside the kernel: a Table is what was counted in a while, wherever that
// was done; tables of neighbouring whiles can be merged, and a table can be projected
// onto fewer dimensions. The same table comes of a tape as of the kernel.
//
// Nothing is lost in silence: what finds no room in a table is counted in one row of its
// own (Key.Other).
//
// The package is pure. It knows events, and no kernel, no clock, no file and no network;
// analyze/aggregate/meter does what needs those.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package aggregate
