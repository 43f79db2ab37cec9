// SPDX-License-Identifier: Apache-2.0

// Package merge joins tapes into one, in the order of the wall clock.
//
//	tape ─┐ hosts 0…
//	tape ─┼─▶ by time of return ─▶ tape with all hosts
//	tape ─┘ hosts n…
//
// Every host of every tape stays a host of its own, also where two tapes were recorded
// on one machine: process numbers and open files are a recording's own, and nothing in
// two recordings says that the same number means the same process.
//
// Events keep their order within a tape. Between tapes they are ordered by the wall
// clock when they returned, which is as good as the hosts' clocks are. Their times are
// put on one clock, to which the anchors of all hosts (trace.Head, ClockNS and WallNS)
// refer; so times can be compared, and trace.Host.Wall says the same as before.
//
// The tapes of one recording that was rotated (record --rotate) are joined: the state that each begins with is left
// out, and the numbers of open files are those of the whole recording already. The result is the tape of the
// recording without rotation.
//
// Memory is bounded by the number of tapes, and by 31 bytes per chunk of content.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package merge
