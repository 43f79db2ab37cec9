// SPDX-License-Identifier: Apache-2.0

// Package bench measures what recording costs: it runs workloads without a tracer
// and in each way of recording, side by side in one run, and reports ratios.
//
// What a figure stands for:
//
//   - Time is the command's own, from fork to wait, taken by a small timer that
//     runs inside each way (src/timer.c). What a recorder does to start and, after
//     the command, to seal is not in it; it has a column of its own.
//   - Each round runs every way once, in an order that rotates, so that a drift of
//     the machine meets all of them alike. A ratio is the median of the ratios of
//     the rounds, each to the untraced run of the same round.
//   - Every run starts from the same files: a copy of a state that is laid once.
//     Writes of the run before are on the disk before the next one starts.
//   - Ways that are slow by orders of magnitude run at a smaller size, in a group
//     with an untraced run of that size.
//   - A recording that lost anything, or a command that failed, makes the run
//     failed, not fast.
//
// The package measures the iotape program from outside, as a user would, and opens
// the tapes that it makes. Package main in bench/run binds flags.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package bench
