// SPDX-License-Identifier: Apache-2.0

// Package rotate divides a recording, while it is made, into streams that are whole by themselves.
//
//	frames ──▶ Splitter ──▶ part 1: head, frames …, end
//	                   └──▶ part 2: head, state, frames …, end
//
// A part ends between two events, in the order in which they are sealed: its follower (seal.Follower) says which events
// that is. Their records can be some frames back, and in the same frames as records of later events. Those frames are
// divided: the part that ends is cut off where they begin, and gets them with the records of its events; the next part
// gets them with the others, behind the state of processes and descriptors. So no event is lost or doubled, and a part
// that its recorder did not end can be sealed from its beginning at any time.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package rotate
