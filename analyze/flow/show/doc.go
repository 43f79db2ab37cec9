// SPDX-License-Identifier: Apache-2.0

// Package show writes what package flow found: as text for people, as JSON, as a graph
// for Graphviz, and as a picture of its own.
//
//	flow.Flow, flow.Path ─▶ Text · JSON · Dot · SVG
//
// It computes nothing, and knows no command.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package show
