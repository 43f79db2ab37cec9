// SPDX-License-Identifier: Apache-2.0

// Package compare is the report of replays: one beside the recording that it repeats, or
// several, on several targets, beside each other and the recording. It is the table of
// Re-Animator (Akgun et al., SYSTOR 2020, section 5): elapsed time, user and system time,
// and the space that is used, with the latencies of each operation.
//
//	Run (what one replay gave) ─▶ Comparison ─▶ page.Page ─▶ text, JSON, HTML
//
// The package is numbers only. Who replayed, how often, and where, is its caller's.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package compare
