// SPDX-License-Identifier: Apache-2.0

// Package predicate is iotape's filter language: boolean expressions over events.
//
//	text ──Parse──▶ Expr ──Compile──▶ Graph ──NewMatcher──▶ Matcher.Match(event)
//	                                    └──Prefilter──▶ table for the capture's hooks
//
// An Expr is the tree as it was written, with positions. Compile checks names, types
// and units, folds what belongs together (comparisons of one number become one set of
// intervals, operations and classes one bit set, texts one list), and makes a decision
// graph of the rest: each node is a test with a node to go to if it holds and one if
// not; equal nodes exist once, cheap tests come first, and no test is made whose result
// no longer matters (after the directed acyclic graphs of Tracefs: Aranya, Wright and
// Zadok, FAST 2004, §3.2).
//
// A field that an event does not have makes every comparison with it false, != and
// "not in" as well; "not (…)" is true then. Where an event has several values of a field
// (the two names of a rename), one that fits is enough, and != says that none does.
//
// Parse and Compile are for hostile input: they bound their work and return an Error
// with the place. Graphs are immutable; a Matcher belongs to one goroutine, does not
// allocate once it is warm, and keeps what the language needs of earlier events.
//
// The package knows events and nothing else: no tape, no file, no kernel.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package predicate
