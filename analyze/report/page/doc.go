// SPDX-License-Identifier: Apache-2.0

// Package page lays out a report: sections with tables and charts, as text for a
// terminal, as JSON, and as one self-contained HTML page that loads nothing, runs no
// script but that of a picture which its caller may add, is light or dark as its reader's
// system is, and can be printed.
//
//	numbers ─▶ Page ─▶ Text, JSON, HTML
//
// What a section shows is said once; the three forms are made of that, so they cannot
// disagree. Data of a section are the numbers themselves, for JSON.
//
// Every string comes from a trace and is hostile: it is escaped in each form. The
// package knows nothing of traces.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package page
