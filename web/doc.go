// SPDX-License-Identifier: Apache-2.0

// Package web shows recordings in a browser: as a live page that asks a Server, and as one
// file that has everything in it.
//
//	Scene, Reports ─▶ Server ─▶ GET /            the page
//	                            GET /api/window  … bounded JSON
//	Scene, page.Page ─▶ WriteFile ─▶ one HTML file
//
// Both are the same page: markup, style and script of ui/, written into the page of
// package analyze/report/page. Its content security policy names the script by its hash, so that
// nothing else runs; all text comes from recordings, and is put into the page as text.
//
// Server answers who shows its token, and asks it by a name that is its own, so that
// neither another user of the machine nor a page of another site can read recordings. It
// reads what its Scene and Reports read, and no file of a name that a request has.
//
// The package listens to nothing, and knows no tapes but through its Scene.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package web
