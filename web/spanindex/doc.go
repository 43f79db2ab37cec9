// SPDX-License-Identifier: Apache-2.0

// Package spanindex is an index of spans of time on lines, for pictures that can be
// zoomed from the whole of a recording to one call of it without a noticeable wait.
//
//	spans ──Builder.Add──▶ file ──Open──▶ Index ──Marks──▶ marks: spans, or several as one
//
// The spans of a line are kept in the order in which they are added, 64 to a page, and
// there eight to a group with a sum. Over the pages there is a tree: each node sums up
// eight of the level below. A picture asks for a line, a window of time and a grain, which
// is what a column of the picture stands for. Nodes that are shorter than the grain are
// given as one mark; only what is longer is opened, down to single spans. So the work for a
// picture depends on its columns, not on how many spans there are, wherever they are
// crowded: for each column of a line at most one page is read, with its eight groups, or
// eight spans. Spans that overlap, as those of requests, can take more.
//
// The index is built in one pass. Memory is a page for each line and 130 bytes for each
// page that was written; the file has about 13 bytes for each span.
//
//	file      = magic(8) page* directory trailer
//	page      = (sum span*)*, as differences
//	directory = extra, for each line its pages: length, check, sum
//	trailer   = offset(8) length(8) check(4) of the directory, magic(8)
//
// A file is hostile: lengths and counts are checked before use, pages when they are read;
// what is damaged gives an error that wraps trace.ErrCorrupt.
//
// The package knows nothing of calls and draws nothing. It opens no files.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package spanindex
